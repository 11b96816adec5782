// SPDX-License-Identifier: Apache-2.0
#include "execlog/disk_space.h"

#include <algorithm>

namespace agbox {
namespace {

constexpr std::uint64_t kLargestReserve = 256 * kMiB;

}  // namespace

std::uint64_t free_space_reserve(std::uint64_t filesystem_bytes) {
  return std::min(kLargestReserve, filesystem_bytes / 20);
}

DiskSpace disk_space(const struct statvfs& disk) {
  return {.left = std::uint64_t{disk.f_bavail} * disk.f_frsize,
          .reserve = free_space_reserve(std::uint64_t{disk.f_blocks} * disk.f_frsize)};
}

}  // namespace agbox
