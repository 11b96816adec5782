// SPDX-License-Identifier: Apache-2.0
// One entry of a tar stream. Owners are not part of it: the unpacking side decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace agbox {

inline constexpr std::size_t kTarBlock = 512;
// Of a sparse file. Its parts are in memory on both sides.
inline constexpr std::size_t kMaxTarExtents = 65536;
// Of a path and of a link's target: PATH_MAX without its NUL.
inline constexpr std::size_t kMaxTarPath = 4095;

// A part of a sparse file that is stored; the rest is zeros.
struct TarExtent {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  bool operator==(const TarExtent&) const = default;
};

struct TarEntry {
  enum class Kind { File, Directory, Symlink };

  Kind kind = Kind::File;
  std::string path;    // bytes; relative and without a slash at the end if it is one of ours
  std::string target;  // of a symbolic link
  std::uint32_t mode = 0;
  std::int64_t mtime_seconds = 0;
  std::uint32_t mtime_nanoseconds = 0;
  std::uint64_t size = 0;  // of a file
  bool is_sparse = false;
  std::vector<TarExtent> extents{};  // of a sparse file, ascending

  // How many bytes of a file follow the header.
  std::uint64_t stored_bytes() const {
    if (!is_sparse) return kind == Kind::File ? size : 0;
    std::uint64_t sum = 0;
    for (const TarExtent& extent : extents) sum += extent.length;
    return sum;
  }
  bool operator==(const TarEntry&) const = default;
};

}  // namespace agbox
