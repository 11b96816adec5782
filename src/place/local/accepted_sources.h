// SPDX-License-Identifier: Apache-2.0
// What a create needs of the files of this machine: its mounts, copies, builtin tools and GPUs,
// found and permitted, or refused.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "agbox/store/v1/record.pb.h"
#include "agbox/v1/spec.pb.h"
#include "base/result.h"
#include "ingress/forbidden_sources.h"
#include "ingress/mount_source.h"
#include "ingress/tool_sources.h"

namespace agbox {

// Owns all that it uses: its call may time out and continue.
struct SourceSearch {
  v1::CreateSpec spec;
  store::v1::CreatedWith created_with;
  std::filesystem::path engine_directory;  // may be empty
  std::filesystem::path home;              // of the daemon's user
  ToolSockets tool_sockets;
  std::filesystem::path devices;
  std::shared_ptr<const ForbiddenSources> forbidden;

  bool is_needed() const;
  // What may hang, as messages name it.
  std::vector<std::string> names() const;
};

struct AcceptedSources {
  v1::CreateSpec spec;                  // its sources are paths without links
  store::v1::CreatedWith created_with;  // with what they are
  std::vector<PinnedSource> pins;       // what tools show, and then the mounts
  ResolvedTools tools;                  // without what is pinned, for the log
};

// Waits for disks.
Result<AcceptedSources> accept_sources(SourceSearch search, InspectedNow& inspected);

}  // namespace agbox
