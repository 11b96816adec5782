// SPDX-License-Identifier: Apache-2.0
// A file beside the store that holds nothing but room. When the disk is full it is given up, so
// that the work which was already accepted can still be recorded.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace agbox {

class Ballast {
 public:
  Ballast(std::filesystem::path path, std::uint64_t bytes)
      : path_(std::move(path)), bytes_(bytes) {}

  // Is it there with all its blocks?
  bool is_whole() const;
  // Makes it, or completes it. Where the disk has no room it leaves nothing and says so.
  Result<> make();
  // Like make(), but only where as much room again stays free; otherwise the next write would take
  // it away at once.
  Result<> make_with_margin();
  // Gives the room back; false where there was none to give.
  bool release();

  std::uint64_t bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  std::uint64_t bytes_;
};

}  // namespace agbox
