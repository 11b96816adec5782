// SPDX-License-Identifier: Apache-2.0
#include "guest/time_slice.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace agbox::guest {
namespace {

// struct sched_attr of the kernel, whose header cannot be included next to <sched.h>.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;  // the time slice in nanoseconds
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);
constexpr std::uint64_t kResetOnFork = 1;
constexpr std::uint64_t kShortestSlice = 100'000;

}  // namespace

void prefer_short_time_slice() {
  SchedulingAttributes wanted;
  wanted.flags = kResetOnFork;
  wanted.nice = ::getpriority(PRIO_PROCESS, 0);
  wanted.runtime = kShortestSlice;
  // Kernels before 6.12 ignore the slice, and an engine may forbid the call: then we wait longer.
  ::syscall(SYS_sched_setattr, 0, &wanted, 0);
}

}  // namespace agbox::guest
