// SPDX-License-Identifier: Apache-2.0
// The two clocks that decisions may see. Code that decides takes a Clock&, so that a test can move
// time by hand.
#pragma once

#include <chrono>

namespace agbox {

using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;
// Time since the machine booted, suspend included: it never jumps when somebody sets the date.
using BootTime = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime wall_now() const = 0;
  virtual BootTime boot_now() const = 0;
};

class SystemClock final : public Clock {
 public:
  WallTime wall_now() const override;
  BootTime boot_now() const override;
};

class ManualClock final : public Clock {
 public:
  explicit ManualClock(WallTime wall = WallTime(std::chrono::seconds(1'700'000'000)))
      : wall_(wall) {}
  WallTime wall_now() const override { return wall_; }
  BootTime boot_now() const override { return boot_; }

  void advance(std::chrono::nanoseconds time) {
    wall_ += time;
    boot_ += time;
  }
  // Somebody sets the date.
  void jump_wall(std::chrono::nanoseconds by) { wall_ += by; }

 private:
  WallTime wall_;
  BootTime boot_{0};
};

}  // namespace agbox
