// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/lifecycle.h"

#include <utility>

#include "base/check.h"
#include "base/overloaded.h"
#include "model/reasons.h"

namespace agbox {
namespace {

using Events = std::vector<LifecycleEvent>;
using Decision = Result<Events>;

Error wrong_state(Reason reason, const std::string& sandbox_id, const std::string& what) {
  return {reason, "sandbox " + sandbox_id + " " + what, {{"sandbox_id", sandbox_id}}};
}

// In each function: no default, so a new state does not compile until someone decides about it.

Decision decide_stop(const std::string& sandbox_id, Lifecycle state, const command::Stop& stop) {
  switch (state) {
    case Lifecycle::Ready:
      return Events{event::StopRequested{stop.reason}};
    case Lifecycle::Stopping:
      return Events{};
    case Lifecycle::Creating:
    case Lifecycle::Resuming:
    case Lifecycle::Stopped:
    case Lifecycle::Failed:
    case Lifecycle::Deleting:
    case Lifecycle::Deleted:
      break;
  }
  return std::unexpected(wrong_state(reason::kSandboxInvalidState, sandbox_id, "is not ready"));
}

Decision decide_resume(const std::string& sandbox_id, Lifecycle state,
                       const command::Resume& resume) {
  switch (state) {
    case Lifecycle::Stopped:
      return Events{event::Accepted{}};
    case Lifecycle::Failed:
      if (resume.has_containers) return Events{event::Accepted{}};
      break;
    case Lifecycle::Creating:
    case Lifecycle::Resuming:
    case Lifecycle::Ready:
    case Lifecycle::Stopping:
    case Lifecycle::Deleting:
    case Lifecycle::Deleted:
      break;
  }
  return std::unexpected(wrong_state(reason::kSandboxInvalidState, sandbox_id, "is not stopped"));
}

Decision decide_delete(Lifecycle state, const command::Delete& request) {
  switch (state) {
    case Lifecycle::Deleting:
    case Lifecycle::Deleted:
      return Events{};
    case Lifecycle::Creating:
    case Lifecycle::Resuming:
    case Lifecycle::Ready:
    case Lifecycle::Stopping:
    case Lifecycle::Stopped:
    case Lifecycle::Failed:
      break;
  }
  return Events{event::DeleteRequested{request.reason}};
}

// " (idle_ttl)", or nothing if it is not known.
std::string in_brackets(const std::string& text) {
  return text.empty() ? std::string() : " (" + text + ")";
}

// The state and the remedy, for a caller that needs a ready sandbox.
std::string not_ready(const SandboxLife& life, const command::StartExec& exec) {
  switch (life.state) {
    case Lifecycle::Creating:
      return "it is being created; wait until it is ready";
    case Lifecycle::Resuming:
      return "it is being resumed; wait until it is ready";
    case Lifecycle::Stopping:
      return "it is being stopped" + in_brackets(life.reason) + "; resume it once it is stopped";
    case Lifecycle::Stopped:
      return "it is stopped" + in_brackets(life.reason) + "; resume it";
    case Lifecycle::Failed:
      return "it has failed" + in_brackets(exec.failure_code) +
             (exec.has_containers ? "; resume it" : "; delete it and create another");
    case Lifecycle::Deleting:
      return "it is being deleted" + in_brackets(life.reason) + "; create another";
    case Lifecycle::Deleted:
      return "it is deleted; create another";
    case Lifecycle::Ready:
      break;
  }
  die("a ready sandbox takes execs");
}

Decision decide_exec(const std::string& sandbox_id, const SandboxLife& life,
                     const command::StartExec& exec) {
  if (life.state == Lifecycle::Ready) return Events{};
  return std::unexpected(
      wrong_state(reason::kSandboxNotReady, sandbox_id, "is not ready: " + not_ready(life, exec)));
}

// What runs the operations speaks of the one under way; anything else is a bug of ours.
std::unexpected<Error> no_operation(const std::string& sandbox_id) {
  return std::unexpected(
      wrong_state(reason::kInternal, sandbox_id, "has no such operation under way"));
}

Decision decide_prepare(const std::string& sandbox_id, Lifecycle state,
                        const command::Prepare& prepare) {
  switch (state) {
    case Lifecycle::Creating:
      return Events{event::Preparing{prepare.phase}};
    case Lifecycle::Resuming:
    case Lifecycle::Ready:
    case Lifecycle::Stopping:
    case Lifecycle::Stopped:
    case Lifecycle::Failed:
    case Lifecycle::Deleting:
    case Lifecycle::Deleted:
      break;
  }
  return no_operation(sandbox_id);
}

Decision decide_success(const std::string& sandbox_id, const SandboxLife& life) {
  switch (life.state) {
    case Lifecycle::Creating:
    case Lifecycle::Resuming:
      return Events{event::Ready{}};
    case Lifecycle::Stopping:
      return Events{event::Stopped{life.reason}};
    case Lifecycle::Deleting:
      return Events{event::Deleted{life.reason}};
    case Lifecycle::Ready:
    case Lifecycle::Stopped:
    case Lifecycle::Failed:
    case Lifecycle::Deleted:
      break;
  }
  return no_operation(sandbox_id);
}

Decision decide_refusal(const std::string& sandbox_id, Lifecycle state, const Failure& failure) {
  switch (state) {
    case Lifecycle::Creating:
    case Lifecycle::Resuming:
    case Lifecycle::Stopping:
    case Lifecycle::Deleting:
      return Events{event::Failed{failure}};
    case Lifecycle::Ready:
    case Lifecycle::Stopped:
    case Lifecycle::Failed:
    case Lifecycle::Deleted:
      break;
  }
  return no_operation(sandbox_id);
}

// While an operation is under way, the operation itself finds out and says so.
Decision decide_loss(Lifecycle state, const Failure& failure) {
  switch (state) {
    case Lifecycle::Ready:
    case Lifecycle::Stopped:
      return Events{event::Failed{failure}};
    case Lifecycle::Creating:
    case Lifecycle::Resuming:
    case Lifecycle::Stopping:
    case Lifecycle::Failed:
    case Lifecycle::Deleting:
    case Lifecycle::Deleted:
      break;
  }
  return Events{};
}

}  // namespace

Decision decide(const std::string& sandbox_id, const SandboxLife& life,
                const LifecycleCommand& command) {
  return std::visit(
      Overloaded{
          [&](const command::Stop& stop) { return decide_stop(sandbox_id, life.state, stop); },
          [&](const command::Resume& resume) {
            return decide_resume(sandbox_id, life.state, resume);
          },
          [&](const command::Delete& request) { return decide_delete(life.state, request); },
          [&](const command::StartExec& exec) { return decide_exec(sandbox_id, life, exec); },
          [&](const command::Prepare& prepare) {
            return decide_prepare(sandbox_id, life.state, prepare);
          },
          [&](const command::Succeed&) { return decide_success(sandbox_id, life); },
          [&](const command::Refuse& refuse) {
            return decide_refusal(sandbox_id, life.state, refuse.failure);
          },
          [&](const command::LosePrimary& loss) { return decide_loss(life.state, loss.failure); },
      },
      command);
}

SandboxLife apply(SandboxLife life, const LifecycleEvent& event) {
  const auto move_to = [](Lifecycle state, std::string reason = {}) {
    return SandboxLife{.state = state, .reason = std::move(reason)};
  };
  return std::visit(
      Overloaded{
          // The first event of all is Accepted too; there the life is Creating from the start.
          [&](const event::Accepted&) {
            return life.state == Lifecycle::Creating ? life : move_to(Lifecycle::Resuming);
          },
          [&](const event::Preparing&) { return life; },
          [&](const event::Ready&) { return move_to(Lifecycle::Ready); },
          [&](const event::Failed&) { return move_to(Lifecycle::Failed); },
          [&](const event::StopRequested& e) { return move_to(Lifecycle::Stopping, e.reason); },
          [&](const event::Stopped& e) { return move_to(Lifecycle::Stopped, e.reason); },
          [&](const event::DeleteRequested& e) { return move_to(Lifecycle::Deleting, e.reason); },
          [&](const event::Deleted&) { return move_to(Lifecycle::Deleted); },
      },
      event);
}

bool has_containers_after(std::string_view failure_code) {
  return failure_code == "SANDBOX_STOP_FAILED" || failure_code == "SANDBOX_RESUME_FAILED" ||
         failure_code == "CONTAINER_CRASHLOOP" || failure_code == "CONTAINER_OOM";
}

v1::SandboxState public_state(Lifecycle state) {
  switch (state) {
    case Lifecycle::Creating:
    case Lifecycle::Resuming:
      return v1::SANDBOX_STATE_PENDING;
    case Lifecycle::Ready:
    case Lifecycle::Stopping:
      return v1::SANDBOX_STATE_READY;
    case Lifecycle::Stopped:
      return v1::SANDBOX_STATE_STOPPED;
    case Lifecycle::Failed:
      return v1::SANDBOX_STATE_FAILED;
    case Lifecycle::Deleting:
      return v1::SANDBOX_STATE_DELETING;
    case Lifecycle::Deleted:
      return v1::SANDBOX_STATE_DELETED;
  }
  die("a lifecycle state without a public one");
}

v1::SandboxEvent to_message(const std::string& sandbox_id, const SandboxLife& after,
                            const LifecycleEvent& event) {
  v1::SandboxEvent message;
  message.set_sandbox_id(sandbox_id);
  message.set_sandbox_state(public_state(after.state));
  const auto with_reason = [&](v1::EventType type, const std::string& reason) {
    message.set_event_type(type);
    message.mutable_sandbox_phase()->set_reason(reason);
  };
  std::visit(
      Overloaded{
          [&](const event::Accepted&) { message.set_event_type(v1::SANDBOX_ACCEPTED); },
          [&](const event::Preparing& e) {
            message.set_event_type(v1::SANDBOX_PREPARING);
            message.mutable_sandbox_phase()->set_phase(e.phase);
          },
          [&](const event::Ready&) { message.set_event_type(v1::SANDBOX_READY); },
          [&](const event::Failed& e) {
            message.set_event_type(v1::SANDBOX_FAILED);
            message.mutable_sandbox_phase()->set_error_code(e.failure.code);
            message.mutable_sandbox_phase()->set_error_message(e.failure.message);
          },
          [&](const event::StopRequested& e) { with_reason(v1::SANDBOX_STOP_REQUESTED, e.reason); },
          [&](const event::Stopped& e) { with_reason(v1::SANDBOX_STOPPED, e.reason); },
          [&](const event::DeleteRequested& e) {
            with_reason(v1::SANDBOX_DELETE_REQUESTED, e.reason);
          },
          [&](const event::Deleted& e) { with_reason(v1::SANDBOX_DELETED, e.reason); },
      },
      event);
  return message;
}

}  // namespace agbox
