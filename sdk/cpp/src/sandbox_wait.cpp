// SPDX-License-Identifier: Apache-2.0
#include <agbox/sandbox_wait.h>

#include <optional>
#include <utility>

namespace agbox::sdk {

namespace {

struct Failure {
  std::string code;
  std::string message;
};

std::string failure_text(const Failure& failure) {
  if (!failure.message.empty()) return failure.message;
  return failure.code.empty() ? "unknown error" : failure.code;
}

// The result of a wait; absent while it continues.
using Outcome = std::optional<Result<void>>;

class GoalCheck {
 public:
  GoalCheck(const std::string& sandbox_id, SandboxGoal goal)
      : sandbox_id_(sandbox_id), goal_(goal) {}

  Outcome operator()(v1::SandboxState state, const Failure& failure) const {
    switch (state) {
      case v1::SANDBOX_STATE_READY:
        return is_for_ready() ? reached() : std::nullopt;
      case v1::SANDBOX_STATE_STOPPED:
        if (is_for_ready()) return failed("entered Stopped state before ready");
        return goal_ == SandboxGoal::Stopped ? reached() : std::nullopt;
      case v1::SANDBOX_STATE_FAILED:
        return failed("failed: " + failure_text(failure));
      case v1::SANDBOX_STATE_DELETING:
        return goal_ == SandboxGoal::Deleted ? std::nullopt : deleted_while_waiting("Deleting");
      case v1::SANDBOX_STATE_DELETED:
        return goal_ == SandboxGoal::Deleted ? reached() : deleted_while_waiting("Deleted");
      default:  // pending, unspecified or unknown: wait for the next event
        return std::nullopt;
    }
  }

  // For an error of the daemon instead of a state.
  Result<void> operator()(const Error& error) const {
    if (error.kind == ErrorKind::SandboxNotFound && goal_ == SandboxGoal::Deleted) return {};
    return std::unexpected(error);
  }

 private:
  static Outcome reached() { return Result<void>(); }
  bool is_for_ready() const { return goal_ == SandboxGoal::Ready || goal_ == SandboxGoal::Resumed; }

  Outcome deleted_while_waiting(const std::string& state) const {
    if (goal_ == SandboxGoal::Ready) return failed("entered " + state + " state before ready");
    return failed(std::string("was deleted while waiting for ") +
                  (goal_ == SandboxGoal::Resumed ? "resume" : "stop"));
  }

  Outcome failed(const std::string& how) const {
    return Result<void>(std::unexpected(Error{.kind = ErrorKind::SandboxFailed,
                                              .code = StatusCode::FailedPrecondition,
                                              .message = "sandbox " + sandbox_id_ + " " + how,
                                              .metadata = {{"sandbox_id", sandbox_id_}}}));
  }

  const std::string& sandbox_id_;
  SandboxGoal goal_;
};

}  // namespace

Result<void> wait_for_sandbox(const RawClient& client, const std::string& sandbox_id,
                              SandboxGoal goal, const WaitOptions& options) {
  const GoalCheck check(sandbox_id, goal);
  v1::GetSandboxRequest request;
  request.set_sandbox_id(sandbox_id);
  ReconnectBackoff backoff(client, "state of sandbox " + sandbox_id, options.follow);
  v1::SandboxHandle now;
  if (options.baseline) {
    now = *options.baseline;
  } else {
    auto response = backoff.retry([&] { return client.get_sandbox(request); });
    if (!response) return check(response.error());
    now = std::move(*response->mutable_sandbox());
  }
  if (auto outcome = check(now.state(), {now.error_code(), now.error_message()})) return *outcome;

  EventFollower events(client, sandbox_id, now.last_event_sequence(), options.follow);
  while (true) {
    const auto event = events.next();
    if (!event) return check(event.error());
    if (options.on_event) options.on_event(*event);
    const v1::SandboxPhaseDetails& details = event->sandbox_phase();
    auto outcome = check(event->sandbox_state(), {details.error_code(), details.error_message()});
    if (outcome) return *outcome;
  }
}

}  // namespace agbox::sdk
