// SPDX-License-Identifier: Apache-2.0
// Blocks of the disk that belong to the store's log already, behind its end. The ballast's go to
// whoever is quickest once it is given up; these nobody else can take, however greedy.
#pragma once

#include <cstdint>
#include <filesystem>

namespace agbox {

class LogRoom {
 public:
  LogRoom(std::filesystem::path log, std::uint64_t bytes) : log_(std::move(log)), bytes_(bytes) {}

  // Sets them aside where they are not yet, and as much again stays free; on a disk without that
  // much, or without a call for it, there are none.
  void hold();
  bool is_held() const { return is_held_; }
  // Has the disk so little left that the next commit may be written into these blocks? Only the
  // work that was accepted may use them up.
  bool is_all_that_is_left() const;

 private:
  std::filesystem::path log_;
  std::uint64_t bytes_;
  bool is_held_ = false;
};

}  // namespace agbox
