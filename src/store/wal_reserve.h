// SPDX-License-Identifier: Apache-2.0
// Disk blocks reserved for SQLite's write-ahead log, beyond its end. Another process may take the
// ballast's blocks once it is released, but not these.
#pragma once

#include <cstdint>
#include <filesystem>

namespace agbox {

class WalReserve {
 public:
  WalReserve(std::filesystem::path log, std::uint64_t bytes)
      : log_(std::move(log)), bytes_(bytes) {}

  // Reserves the blocks, unless already reserved, if as much again stays free. Without enough space
  // or without fallocate there is no reserve.
  void hold();
  bool is_held() const { return is_held_; }
  // True if the disk has so little free space that the next commit may use the reserve. Only
  // accepted work may use it up.
  bool is_last_space() const;

 private:
  std::filesystem::path log_;
  std::uint64_t bytes_;
  bool is_held_ = false;
};

}  // namespace agbox
