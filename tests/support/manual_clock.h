// SPDX-License-Identifier: Apache-2.0
// A clock that only a test advances.
#pragma once

#include <chrono>
#include <string>

#include "base/clock.h"

namespace agbox {

class ManualClock final : public Clock {
 public:
  explicit ManualClock(WallTime wall = WallTime(std::chrono::seconds(1'700'000'000)))
      : wall_(wall) {}
  WallTime wall_now() const override { return wall_; }
  BootTime boot_now() const override { return boot_; }
  std::string boot_id() const override { return "boot-" + std::to_string(boots_); }

  void advance(std::chrono::nanoseconds time) {
    wall_ += time;
    boot_ += time;
  }
  // Simulates a change of the system date.
  void jump_wall(std::chrono::nanoseconds by) { wall_ += by; }
  void reboot() {
    ++boots_;
    boot_ = BootTime(0);
  }

 private:
  WallTime wall_;
  BootTime boot_{0};
  int boots_ = 1;
};

}  // namespace agbox
