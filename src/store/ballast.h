// SPDX-License-Identifier: Apache-2.0
// A file next to the store that only reserves disk space. When the disk is full it is deleted, so
// that work already accepted can still be recorded.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace agbox {

class Ballast {
 public:
  Ballast(std::filesystem::path path, std::uint64_t bytes)
      : path_(std::move(path)), bytes_(bytes) {}

  // True if it exists with all its blocks.
  bool is_whole() const;
  // Creates or completes it. If the disk is full, leaves nothing behind and fails.
  Result<> make();
  // Like make(), but only if as much space again stays free; otherwise the next write would release
  // it at once.
  Result<> make_with_margin();
  // Frees the space; false if there was no ballast.
  bool release();

  std::uint64_t bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  std::uint64_t bytes_;
};

}  // namespace agbox
