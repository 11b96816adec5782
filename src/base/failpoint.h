// SPDX-License-Identifier: Apache-2.0
// Named points at which a test can make the process die, stall or fail:
//
//   AGBOX_FAILPOINT("store.before_commit");
//
// The environment variable AGBOX_FAILPOINTS arms them; it is read once at process start. A process
// with more privileges than its caller (file capability, set-uid bit) ignores it.
//
//   AGBOX_FAILPOINTS="store.before_commit=kill@3;control.after_start=stop"
//
//   kill   SIGKILL, like a power cut
//   stop   SIGSTOP; the process continues after SIGCONT
//   error  AGBOX_FAILPOINT_FAILS() returns true
//   hold   the operation step waits until the operation is cancelled
//   @N     takes effect from the N-th passage on (default 1)
//
// An unarmed failpoint costs one relaxed load.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

namespace agbox::failpoint {

enum class Action { None, Kill, Stop, Error, Hold };

// Returns the action for this passage; performs Kill and Stop itself. Called only while armed.
Action passed(std::string_view name);

// Replaces the armed set; returns false and changes nothing on a syntax error. For tests.
bool arm(std::string_view specification);
std::vector<std::string> armed();
// Passages of an armed failpoint since it was armed.
unsigned passages(std::string_view name);
// Names passed while recording was on, in order of first passage.
void record_passages(bool on);
std::vector<std::string> recorded_passages();

extern std::atomic<bool> active;

inline bool fails(std::string_view name) {
  return active.load(std::memory_order_relaxed) && passed(name) == Action::Error;
}

}  // namespace agbox::failpoint

#define AGBOX_FAILPOINT(name)                                       \
  do {                                                              \
    if (::agbox::failpoint::active.load(std::memory_order_relaxed)) \
      static_cast<void>(::agbox::failpoint::passed(name));          \
  } while (false)
#define AGBOX_FAILPOINT_FAILS(name) (::agbox::failpoint::fails(name))
