// SPDX-License-Identifier: Apache-2.0
// How an exec ended, in the terms of the client API. Pure: derived from the guest's report, from
// the end of the container, or from the request.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "agbox/v1/event.pb.h"
#include "agbox/v1/exec.pb.h"
#include "model/guest/exec_end.h"
#include "model/sandbox/restart_plan.h"

namespace agbox {

struct ExecOutcome {
  v1::ExecState state = v1::EXEC_STATE_FAILED;
  std::int32_t exit_code = 0;
  std::string error_code;
  std::string error_message;

  bool operator==(const ExecOutcome&) const = default;
};

// The guest's report is trusted for its own execs, except that an exec is cancelled only if that
// was requested.
ExecOutcome outcome_of(const ExecEnd& end, bool was_cancel_requested);
ExecOutcome outcome_of(const ContainerLoss& loss);
// Its container ended before it could start, and was not restarted in time.
ExecOutcome waited_outcome(const std::string& last_exit);
ExecOutcome cancelled_outcome();
// It was cancelled because it took longer than this.
ExecOutcome timed_out_outcome(std::chrono::nanoseconds timeout);
// It could not be sent to the guest.
ExecOutcome unstarted_outcome(std::string why);

v1::SandboxEvent started_event(const std::string& exec_id);
v1::SandboxEvent ended_event(const std::string& exec_id, const ExecOutcome& outcome);

}  // namespace agbox
