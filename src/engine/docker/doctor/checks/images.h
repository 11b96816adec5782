// SPDX-License-Identifier: Apache-2.0
// Do the images of the sandboxes, and those that the client asks for, exist on the engine?
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/docker/doctor/check_context.h"

namespace agbox {

struct ImagesCheck {
  static constexpr std::string_view kName = "images";
  static constexpr std::size_t kMost = 64;  // the rest is not checked

  struct Missing {
    std::string name;
    bool is_of_sandbox = false;  // else the client asked for it
  };
  std::size_t requested = 0;
  Result<std::vector<Missing>> missing;

  static std::vector<std::string> names(const EngineDiagnosisRequest& request) {
    std::vector<std::string> all = request.requested_images;
    for (const std::string& name : request.sandbox_images) {
      if (all.size() == kMost) break;
      if (std::ranges::find(all, name) == all.end()) all.push_back(name);
    }
    return all;
  }

  static ImagesCheck gather(const EngineCheckContext& context) {
    ImagesCheck check{.requested = context.images.size(), .missing = {}};
    if (!context.engine) {
      check.missing = std::unexpected(context.engine.error());
    } else if (!context.engine->missing_images) {
      check.missing = std::unexpected(context.engine->missing_images.error());
    } else {
      const std::vector<std::string>& of_sandboxes = context.request.sandbox_images;
      for (const std::string& name : *context.engine->missing_images) {
        const bool is_of_sandbox = std::ranges::find(of_sandboxes, name) != of_sandboxes.end();
        check.missing->push_back({.name = name, .is_of_sandbox = is_of_sandbox});
      }
    }
    return check;
  }

  void judge(Findings& findings) const {
    if (!missing) return findings.unknown("not checked: " + missing.error().message());
    for (const Missing& image : *missing) {
      findings.warn(image.name + " is not on the engine" +
                        (image.is_of_sandbox ? ", though a sandbox was made of it" : "") +
                        ": the next create with it has to pull it",
                    "docker pull " + image.name);
    }
    if (!findings.empty()) return;
    findings.ok(requested == 0 ? "no sandbox has an image yet"
                               : counted(requested, "image is", "images are") + " on the engine");
  }
};

}  // namespace agbox
