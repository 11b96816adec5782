// SPDX-License-Identifier: Apache-2.0
#include "control/exec/exec_outcome.h"

#include <utility>

#include "base/check.h"

namespace agbox {
namespace {

constexpr const char* kRunFailed = "EXEC_RUN_FAILED";
constexpr int kSignalBase = 128;

ExecOutcome failed(std::int32_t exit_code, std::string message) {
  return {.state = v1::EXEC_STATE_FAILED,
          .exit_code = exit_code,
          .error_code = kRunFailed,
          .error_message = std::move(message)};
}

// The guest adds one if it saw more than the code, such as a lack of memory.
std::string with_detail(std::string what, const std::string& detail) {
  return detail.empty() ? what : what + ": " + detail;
}

v1::EventType end_type(v1::ExecState state) {
  switch (state) {
    case v1::EXEC_STATE_FINISHED:
      return v1::EXEC_FINISHED;
    case v1::EXEC_STATE_FAILED:
      return v1::EXEC_FAILED;
    case v1::EXEC_STATE_CANCELLED:
      return v1::EXEC_CANCELLED;
    default:
      die("an exec does not end in this state");
  }
}

}  // namespace

ExecOutcome outcome_of(const ExecEnd& end, bool was_cancel_requested) {
  using How = ExecEnd::How;
  switch (end.how) {
    case How::Exited:
      if (end.code == 0) {
        return {.state = v1::EXEC_STATE_FINISHED,
                .exit_code = 0,
                .error_code = {},
                .error_message = {}};
      }
      return failed(end.code, with_detail("exit code " + std::to_string(end.code), end.detail));
    case How::Signaled:
      return failed(kSignalBase + end.code,
                    with_detail("killed by signal " + std::to_string(end.code), end.detail));
    case How::NotStarted:
      return failed(end.code, end.detail.empty() ? "the command could not be started" : end.detail);
    case How::Cancelled:
      if (was_cancel_requested) return cancelled_outcome();
      return failed(0, "the sandbox's guest ended it without a request");
    case How::RunnerLost:
      return failed(0, end.detail.empty() ? "its runner was killed inside the sandbox, and what it "
                                            "ran was killed with it; its exit code is not known"
                                          : end.detail);
  }
  die("an exec ends in one of these ways");
}

ExecOutcome outcome_of(const ContainerLoss& loss) {
  return {.state = v1::EXEC_STATE_FAILED,
          .exit_code = 0,
          .error_code = loss.is_out_of_memory ? "CONTAINER_OOM" : "CONTAINER_EXITED",
          .error_message = "the sandbox's container did not live on: " + loss.how};
}

ExecOutcome waited_outcome(const std::string& last_exit) {
  return {.state = v1::EXEC_STATE_FAILED,
          .exit_code = 0,
          .error_code = "CONTAINER_EXITED",
          .error_message = "the sandbox's container ended (" + last_exit +
                           ") and was not restarted within 30 s; the command was not started"};
}

ExecOutcome cancelled_outcome() {
  return {.state = v1::EXEC_STATE_CANCELLED, .exit_code = 0, .error_code = {}, .error_message = {}};
}

ExecOutcome timed_out_outcome(std::chrono::nanoseconds timeout) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  const bool is_whole = milliseconds % 1000 == 0;
  const std::string limit =
      is_whole ? std::to_string(milliseconds / 1000) + " s" : std::to_string(milliseconds) + " ms";
  return {.state = v1::EXEC_STATE_CANCELLED,
          .exit_code = 0,
          .error_code = "TIMEOUT",
          .error_message = "it took longer than its timeout of " + limit};
}

ExecOutcome unstarted_outcome(std::string why) {
  return failed(0, std::move(why));
}

v1::SandboxEvent started_event(const std::string& exec_id) {
  v1::SandboxEvent event;
  event.set_event_type(v1::EXEC_STARTED);
  event.mutable_exec()->set_exec_id(exec_id);
  event.mutable_exec()->set_exec_state(v1::EXEC_STATE_RUNNING);
  return event;
}

v1::SandboxEvent ended_event(const std::string& exec_id, const ExecOutcome& outcome) {
  v1::SandboxEvent event;
  event.set_event_type(end_type(outcome.state));
  v1::ExecEventDetails* details = event.mutable_exec();
  details->set_exec_id(exec_id);
  details->set_exec_state(outcome.state);
  details->set_exit_code(outcome.exit_code);
  details->set_error_code(outcome.error_code);
  details->set_error_message(outcome.error_message);
  return event;
}

}  // namespace agbox
