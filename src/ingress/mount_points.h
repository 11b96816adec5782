// SPDX-License-Identifier: Apache-2.0
// Mounts below other mounts: an engine creates the missing directory for one, also in the source of
// the other.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ingress/mount_source.h"

namespace agbox {

struct PlacedMount {
  const PinnedSource* source = nullptr;
  std::string target;  // normalized
  bool is_writable = false;
};

// INVALID_ARGUMENT if a target does not exist in a read-only mount: no engine can create it there.
// May wait for a disk.
Result<> check_mount_points(const std::vector<PlacedMount>& mounts);

}  // namespace agbox
