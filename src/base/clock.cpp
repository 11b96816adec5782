// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <algorithm>
#include <ctime>
#include <fstream>

#include "base/check.h"

namespace agbox {
namespace {

std::chrono::nanoseconds read_clock(clockid_t id) {
  timespec now{};
  AGBOX_CHECK(::clock_gettime(id, &now) == 0, "clock_gettime");
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

std::chrono::nanoseconds time_since(const Moment& then, const Moment& now) {
  using std::chrono::nanoseconds;
  // Stored values may be invalid: clamp them to [boot or 1970, now].
  if (!then.boot_id.empty() && then.boot_id == now.boot_id) {
    return now.boot - std::clamp(then.boot, nanoseconds(0), now.boot);
  }
  const nanoseconds by_date =
      now.wall - std::clamp(then.wall, std::min(WallTime(), now.wall), now.wall);
  return then.boot_id.empty() ? by_date : std::max(by_date, now.boot);
}

// Linux only; without a boot ID, moments of earlier processes are compared by date alone.
SystemClock::SystemClock() {
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id_;
}

WallTime SystemClock::wall_now() const {
  return WallTime(read_clock(CLOCK_REALTIME));
}

BootTime SystemClock::boot_now() const {
#ifdef CLOCK_BOOTTIME
  return read_clock(CLOCK_BOOTTIME);
#else
  return read_clock(CLOCK_MONOTONIC);
#endif
}

}  // namespace agbox
