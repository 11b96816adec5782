// SPDX-License-Identifier: Apache-2.0
// What the daemon knows of one sandbox's objects, in the engine and on this machine. It is stored
// together with how an operation ended: an interrupted operation starts over and finds what it made
// by its labels.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agbox/store/v1/record.pb.h"
#include "model/spec/sandbox_spec.h"

namespace agbox {

// What is copied from the host into a sandbox when it is created.
struct PlannedCopy {
  v1::CopySpec spec;
  // What the source was when the sandbox was accepted; nullopt if that is not known.
  std::optional<store::v1::MountSource> found;
  bool is_shadow = false;  // of a builtin tool
};

struct SandboxFacts {
  std::string sandbox_id;
  SandboxSpec spec;
  store::v1::CreatedWith created_with;
  std::optional<std::string> subnet;
  std::map<std::string, store::v1::Container> containers;  // by name; the primary's is empty
  // Of the primary's next start. On disk before the operation begins, because a guest whose secret
  // is lost cannot be adopted again.
  std::string next_secret{};

  // The engine's ID of the primary container; empty if there is none.
  std::string primary_id() const {
    const auto primary = containers.find("");
    return primary == containers.end() ? std::string() : primary->second.container_id();
  }
  // Whether the daemon paused it, or has begun to.
  bool is_paused() const {
    const auto primary = containers.find("");
    return primary != containers.end() &&
           primary->second.paused() != store::v1::Container::PAUSED_NO;
  }
  // In this order: a copy of the spec may replace a file of a tool.
  std::vector<PlannedCopy> copies() const {
    std::vector<PlannedCopy> planned;
    for (const store::v1::ToolSource& tool : created_with.tools()) {
      if (!tool.resource().shadow_copy()) continue;
      PlannedCopy copy{.spec = {}, .found = tool.found(), .is_shadow = true};
      copy.spec.set_source(tool.resource().source());
      copy.spec.set_target(tool.resource().target());
      planned.push_back(std::move(copy));
    }
    for (int i = 0; i < spec.create_spec.copies_size(); ++i) {
      planned.push_back({.spec = spec.create_spec.copies(i), .found = std::nullopt});
      if (i < created_with.copies_size()) planned.back().found = created_with.copies(i);
    }
    return planned;
  }
  // The parent of its guest's directory; empty if nothing is known of how it was created.
  std::filesystem::path link_root() const {
    if (!created_with.link_root().empty()) return created_with.link_root();
    if (created_with.state_root().empty()) return {};
    return std::filesystem::path(created_with.state_root()) / "links";
  }
};

}  // namespace agbox
