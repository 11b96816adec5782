// SPDX-License-Identifier: Apache-2.0
// The mount that a path lies on, from the text of /proc/self/mountinfo.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace agbox {

struct MountPoint {
  std::string directory;
  std::string filesystem;            // ext4, xfs
  std::vector<std::string> options;  // of the filesystem, not of this one mount
};

// `path` is absolute and has neither links nor dots. nullopt if the text has no mount for it.
std::optional<MountPoint> mount_point_of(std::string_view path, std::string_view mountinfo);

}  // namespace agbox
