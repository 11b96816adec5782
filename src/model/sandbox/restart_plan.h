// SPDX-License-Identifier: Apache-2.0
// What to do with a sandbox that should run, or be stopped, from what the engine shows of it: after
// a start of the daemon, after a gap in the engine's events, and when its guest was lost. Pure.
#pragma once

#include <optional>
#include <string>

#include "model/sandbox/lifecycle.h"

namespace agbox {

enum class PrimarySeen {
  Missing,     // the engine does not have it
  Created,     // it was never started
  Running,     // the start that we know of
  Paused,      // the same, but paused
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
  // The guest of a running container can come back only through the directory mounted there.
  bool has_guest_directory = true;
  bool has_finished = false;  // it exited because the caller's command ended with code 0

  bool operator==(const SandboxSeen&) const = default;
};

struct ContainerLoss {
  bool is_out_of_memory = false;
  std::string how;  // for people, such as "it exited with code 137"
  std::optional<int> exit_code{};

  bool operator==(const ContainerLoss&) const = default;
};

// What the engine shows of a sandbox, in the terms of the restart plan and for people.
struct SandboxInspection {
  SandboxSeen seen;
  std::optional<ContainerLoss> loss;  // nothing while it runs and is still the start that we know

  bool operator==(const SandboxInspection&) const = default;
};

enum class RestartStep {
  Stay,     // as it is
  Adopt,    // it runs, and its guest reconnects by itself
  Restart,  // its container should run and does not
  Finish,   // it is stopped: its command is done
  Fail,
};

struct RestartPlan {
  RestartStep step = RestartStep::Stay;
  Failure failure{};  // of Fail

  bool operator==(const RestartPlan&) const = default;
};

RestartPlan restart_plan(Lifecycle state, const SandboxSeen& seen);

// How a container ended, as events and handles report it: "exit code 137" if it has one.
std::string exit_text(const ContainerLoss& loss);

// Of a container that ended so often, and so soon, that it is not started again.
Failure crash_failure(const ContainerLoss& loss);

}  // namespace agbox
