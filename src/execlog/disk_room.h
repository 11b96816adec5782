// SPDX-License-Identifier: Apache-2.0
// How much room is left on a disk, and how much should be.
#pragma once

#include <sys/statvfs.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace agbox {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// What has to stay free of a filesystem of that size.
std::uint64_t free_space_reserve(std::uint64_t filesystem_bytes);

struct DiskRoom {
  std::uint64_t left = 0;
  std::uint64_t reserve = 0;
};
DiskRoom disk_room(const struct statvfs& disk);

// What to add to an error of the engine that keeps its files in `root_folder`; empty while its disk
// has room for the smallest of containers, or cannot be seen from here. The engine's own words need
// not tell of a full disk: overlayfs mounts read-only then, and a file is missing.
std::string full_disk_remark(const std::filesystem::path& root_folder);

}  // namespace agbox
