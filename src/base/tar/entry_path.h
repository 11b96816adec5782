// SPDX-License-Identifier: Apache-2.0
// What everyone who unpacks a tar stream needs of an entry's path and time.
#pragma once

#include <sys/stat.h>

#include <array>
#include <string_view>

#include "base/tar/tar_reader.h"

namespace agbox {

// For utimensat(): the time of the last access stays as it is.
inline std::array<timespec, 2> times_of(const TarEntry& entry) {
  return {timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
          timespec{.tv_sec = entry.mtime_seconds,
                   .tv_nsec = static_cast<long>(entry.mtime_nanoseconds)}};
}

// Empty if there is only one component.
inline std::string_view all_but_last(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

inline std::string_view last_component(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace agbox
