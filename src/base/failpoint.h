// SPDX-License-Identifier: Apache-2.0
// Named places where a test can make the process die, stall or fail:
//
//   AGBOX_FAILPOINT("store.before_commit");
//
// AGBOX_FAILPOINTS in the environment arms them, read once when the process starts. A process that
// has more rights than whoever started it (a file capability, a set-uid bit) refuses to start with
// it.
//
//   AGBOX_FAILPOINTS="store.before_commit=kill@3;control.after_start=stop"
//
//   kill   the process gets SIGKILL, as by a power cut
//   stop   the process stops (SIGSTOP) until it gets SIGCONT
//   error  AGBOX_FAILPOINT_FAILS() is true there
//   hold   a step of an operation waits there until the operation is cancelled
//   (control/sandbox/operations/step.h)
//   @N     from the N-th passage on (1 where it is not given); before that nothing happens
//
// Unarmed, a failpoint is one relaxed load.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

namespace agbox::failpoint {

enum class Action { None, Kill, Stop, Error, Hold };

// What to do at this passage; performs Kill and Stop itself. Only called while something is armed.
Action passed(std::string_view name);

// Replaces what is armed; false, and nothing changes, where the text cannot be read. For tests.
bool arm(std::string_view specification);
// The names of those that are armed.
std::vector<std::string> armed();
// How often an armed one was passed since it was armed.
unsigned passages(std::string_view name);
// Names passed since the process started, in the order of their first passage, while `record` was
// on.
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
