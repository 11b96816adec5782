// SPDX-License-Identifier: Apache-2.0
// The two clocks that decisions may see. Code that decides takes a Clock&, so that a test can move
// time by hand.
#pragma once

#include <chrono>
#include <string>

namespace agbox {

using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;
// Time since the machine booted, suspend included: it never jumps when somebody sets the date.
using BootTime = std::chrono::nanoseconds;

// A moment as both clocks saw it, for somebody who asks in another process how long ago it was.
struct Moment {
  WallTime wall{};
  BootTime boot{0};
  std::string boot_id{};  // of which boot; empty where that is not known

  bool operator==(const Moment&) const = default;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime wall_now() const = 0;
  virtual BootTime boot_now() const = 0;
  // Another one after each boot of the machine.
  virtual std::string boot_id() const = 0;

  Moment now() const { return {.wall = wall_now(), .boot = boot_now(), .boot_id = boot_id()}; }
};

// By the boot clock, whatever was done to the date since. Only of a moment in an earlier boot the
// date is all there is; that is then at least as long ago as this boot.
std::chrono::nanoseconds time_since(const Moment& then, const Moment& now);

class SystemClock final : public Clock {
 public:
  SystemClock();
  WallTime wall_now() const override;
  BootTime boot_now() const override;
  std::string boot_id() const override { return boot_id_; }

 private:
  std::string boot_id_;
};

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
  // Somebody sets the date.
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
