// SPDX-License-Identifier: Apache-2.0
// What to do with a sandbox, from what is stored of it and what the engine shows of it: after a
// start of the daemon, after a gap in the engine's events, and when its guest went away. Pure.
//
// What is stored decides alone while an operation is under way: it goes on, whatever is there. Only
// of a sandbox that should run, or stand still, the engine is asked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/sandbox/lifecycle.h"

namespace agbox {

struct SandboxStored {
  Lifecycle state = Lifecycle::Creating;
  bool cleans_up = false;      // of a failed create: something may be left in the engine
  std::uint32_t attempts = 0;  // at the operation under way, by this daemon and those before it
};

enum class PrimarySeen {
  Missing,     // the engine does not have it
  Created,     // it was never started
  Running,     // the start that we know of
  Paused,      // the same, and somebody holds it
  OtherStart,  // it runs, but not as we started it: its guest has nothing of ours, or no network
  Exited,
  Foreign,  // what has its id does not carry its labels
};

// Whether something of ours runs there.
constexpr bool runs(PrimarySeen primary) {
  return primary == PrimarySeen::Running || primary == PrimarySeen::Paused ||
         primary == PrimarySeen::OtherStart;
}

struct SandboxSeen {
  PrimarySeen primary = PrimarySeen::Missing;
  bool has_network = true;
  // The guest of a running container can come back only through the folder that is mounted there.
  bool has_guest_folder = true;
};

enum class RestartStep {
  Stay,       // as it is
  Look,       // ask the engine, then plan again
  StartOver,  // remove what carries its labels, then make it again
  GoOn,       // with the resume, the stop or the delete
  CleanUp,    // what a failed create left
  Adopt,      // it runs, and its guest comes back by itself
  Restart,    // its container should run and does not
  Fail,
};

struct RestartPlan {
  RestartStep step = RestartStep::Stay;
  Failure failure{};  // of Fail

  bool operator==(const RestartPlan&) const = default;
};

// A create that takes the daemon down with it is not tried for ever.
inline constexpr std::uint32_t kMostAttempts = 3;

// `seen` is nothing before the engine was asked.
RestartPlan restart_plan(const SandboxStored& stored, const std::optional<SandboxSeen>& seen);

}  // namespace agbox
