// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <ctime>

#include "base/check.h"

namespace agbox {
namespace {

std::chrono::nanoseconds read_clock(clockid_t id) {
  timespec now{};
  AGBOX_CHECK(::clock_gettime(id, &now) == 0, "clock_gettime");
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

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
