// SPDX-License-Identifier: Apache-2.0
#include "base/tar/file_extents.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace agbox {

std::optional<std::vector<TarExtent>> extents_of(int fd, const struct stat& status) {
  if (status.st_blocks * 512 >= status.st_size) return std::nullopt;
  std::vector<TarExtent> extents;
  off_t at = 0;
  while (at < status.st_size) {
    const off_t data = ::lseek(fd, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // a hole to the end
    const off_t hole = data < 0 ? -1 : ::lseek(fd, data, SEEK_HOLE);
    if (data < at || hole <= data) return std::nullopt;  // not supported, or it changes now
    if (data >= status.st_size) break;                   // it has grown
    if (extents.size() + 1 == kMaxTarExtents) {
      extents.push_back({.offset = static_cast<std::uint64_t>(data),
                         .length = static_cast<std::uint64_t>(status.st_size - data)});
      break;
    }
    extents.push_back(
        {.offset = static_cast<std::uint64_t>(data),
         .length = static_cast<std::uint64_t>(std::min(hole, status.st_size) - data)});
    at = hole;
  }
  return extents;
}

}  // namespace agbox
