// SPDX-License-Identifier: Apache-2.0
// Free space of a filesystem, and how much of it is reserved.
#pragma once

#include <sys/statvfs.h>

#include <cstdint>

namespace agbox {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// The free space to keep on a filesystem of that size.
std::uint64_t free_space_reserve(std::uint64_t filesystem_bytes);

struct DiskSpace {
  std::uint64_t left = 0;
  std::uint64_t reserve = 0;
};
DiskSpace disk_space(const struct statvfs& disk);

}  // namespace agbox
