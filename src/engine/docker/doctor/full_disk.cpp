// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/doctor/full_disk.h"

#include <sys/statvfs.h>

#include <cstdint>

namespace agbox {
namespace {

constexpr std::uint64_t kBytesPerMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kSmallestContainer = 4 * kBytesPerMiB;

}  // namespace

std::string full_disk_remark(const std::filesystem::path& root_directory) {
  struct statvfs disk{};
  if (::statvfs(root_directory.c_str(), &disk) != 0) return {};
  const std::uint64_t left = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  if (left >= kSmallestContainer) return {};
  return "; the engine's disk (" + root_directory.string() + ") has " +
         std::to_string(left / kBytesPerMiB) + " MiB left: free some space there";
}

}  // namespace agbox
