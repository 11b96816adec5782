// SPDX-License-Identifier: Apache-2.0
// What a file is, regardless of its name.
#pragma once

#include <sys/stat.h>

#include <compare>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

namespace agbox {

struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  auto operator<=>(const FileIdentity&) const = default;
};

inline std::optional<FileIdentity> identity_of(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return std::nullopt;
  return FileIdentity{.device = status.st_dev, .inode = status.st_ino};
}

// Where an open file is now; nullopt if it was removed, or is not below our root directory.
inline std::optional<std::string> path_of(int fd) {
  std::error_code problem;
  auto path =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), problem).string();
  if (problem || !path.starts_with('/') || path.ends_with(" (deleted)")) return std::nullopt;
  return path;
}

}  // namespace agbox
