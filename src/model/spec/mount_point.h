// SPDX-License-Identifier: Apache-2.0
// The mounts of this host, from the text of /proc/self/mountinfo, and what they say of a path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace agbox {

struct MountPoint {
  std::uint64_t id = 0;
  std::string device;      // of the filesystem, as 8:1
  std::string root;        // the directory of the filesystem that is mounted; "/" is all of it
  std::string directory;   // where
  std::string filesystem;  // ext4, xfs
  std::vector<std::string> options;  // of the filesystem, not of this one mount
};

// In the order of the text: a later one at the same directory lies over the earlier one.
std::vector<MountPoint> parse_mountinfo(std::string_view mountinfo);

// The one that a path lies on. `path` is absolute and has neither links nor dots. nullopt if the
// text has no mount for it.
std::optional<MountPoint> mount_point_of(std::string_view path, std::string_view mountinfo);

// A file regardless of the path that leads to it: a bind mount gives it another path, but not
// another location.
struct FileLocation {
  std::string device;
  std::string path;  // in the filesystem
  bool operator==(const FileLocation&) const = default;
};

// Of a path on that mount.
FileLocation location_on(const MountPoint& mount, std::string_view path);
// Whether `inner` is `outer` or below it.
bool is_within(const FileLocation& inner, const FileLocation& outer);

}  // namespace agbox
