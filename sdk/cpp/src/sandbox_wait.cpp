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

// How one waiting ends: absent while it goes on.
using Verdict = std::optional<Result<void>>;

class Judge {
 public:
  Judge(const std::string& sandbox_id, SandboxGoal goal) : sandbox_id_(sandbox_id), goal_(goal) {}

  Verdict operator()(v1::SandboxState state, const Failure& failure) const {
    switch (state) {
      case v1::SANDBOX_STATE_READY:
        return is_for_ready() ? reached() : std::nullopt;
      case v1::SANDBOX_STATE_STOPPED:
        if (is_for_ready()) return lost("entered Stopped state before ready");
        return goal_ == SandboxGoal::Stopped ? reached() : std::nullopt;
      case v1::SANDBOX_STATE_FAILED:
        return lost("failed: " + failure_text(failure));
      case v1::SANDBOX_STATE_DELETING:
        return goal_ == SandboxGoal::Deleted ? std::nullopt : deleted_meanwhile("Deleting");
      case v1::SANDBOX_STATE_DELETED:
        return goal_ == SandboxGoal::Deleted ? reached() : deleted_meanwhile("Deleted");
      default:  // pending, no state at all, or one of a later daemon: the next event tells
        return std::nullopt;
    }
  }

  // Of what the daemon said while it was asked for the state or the events.
  Result<void> operator()(const Error& error) const {
    if (error.kind == ErrorKind::SandboxNotFound && goal_ == SandboxGoal::Deleted) return {};
    return std::unexpected(error);
  }

 private:
  static Verdict reached() { return Result<void>(); }
  bool is_for_ready() const { return goal_ == SandboxGoal::Ready || goal_ == SandboxGoal::Resumed; }

  Verdict deleted_meanwhile(const std::string& state) const {
    if (goal_ == SandboxGoal::Ready) return lost("entered " + state + " state before ready");
    return lost(std::string("was deleted while waiting for ") +
                (goal_ == SandboxGoal::Resumed ? "resume" : "stop"));
  }

  Verdict lost(const std::string& how) const {
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
  const Judge judge(sandbox_id, goal);
  v1::GetSandboxRequest request;
  request.set_sandbox_id(sandbox_id);
  Patience patience(client, "state of sandbox " + sandbox_id, options.follow);
  const auto answer = patience.answer_of([&] { return client.get_sandbox(request); });
  if (!answer) return judge(answer.error());
  const v1::SandboxHandle& now = answer->sandbox();
  if (auto verdict = judge(now.state(), {now.error_code(), now.error_message()})) return *verdict;

  EventFollower events(client, sandbox_id, now.last_event_sequence(), options.follow);
  while (true) {
    const auto event = events.next();
    if (!event) return judge(event.error());
    if (options.on_event) options.on_event(*event);
    const v1::SandboxPhaseDetails& details = event->sandbox_phase();
    auto verdict = judge(event->sandbox_state(), {details.error_code(), details.error_message()});
    if (verdict) return *verdict;
  }
}

}  // namespace agbox::sdk
