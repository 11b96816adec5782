// SPDX-License-Identifier: Apache-2.0
// The two clocks that decisions use. Code that decides takes a Clock&, so that tests control time.
#pragma once

#include <chrono>
#include <string>

namespace agbox {

using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;
// Time since boot, including suspend; unaffected by changes to the system date.
using BootTime = std::chrono::nanoseconds;

// A point in time on both clocks, so that another process can compute how long ago it was.
struct Moment {
  WallTime wall{};
  BootTime boot{0};
  std::string boot_id{};  // empty if unknown

  bool operator==(const Moment&) const = default;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime wall_now() const = 0;
  virtual BootTime boot_now() const = 0;
  // Changes with every boot.
  virtual std::string boot_id() const = 0;

  Moment now() const { return {.wall = wall_now(), .boot = boot_now(), .boot_id = boot_id()}; }
};

// Elapsed time by the boot clock, regardless of date changes. For a moment of an earlier boot only
// the date is available; the result is then at least the current uptime.
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

}  // namespace agbox
