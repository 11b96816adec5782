// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/lifecycle.h"

#include <array>
#include <utility>

#include "base/check.h"
#include "base/overloaded.h"
#include "model/reasons.h"

namespace agbox {
namespace {

using Events = std::vector<LifecycleEvent>;
using Decision = Result<Events>;

enum class Verdict {
  Refused,
  Nothing,  // accepted, but changes nothing
  Happens,
};

struct Row {
  Lifecycle state;
  std::array<Verdict, std::variant_size_v<LifecycleCommand>> by_command;  // in its order
};

constexpr auto kTable = [] {
  using enum Lifecycle;
  using enum Verdict;
  // clang-format off
  return std::to_array<Row>({
      //          Stop     Resume   Delete   StartExec Prepare  Succeed  Refuse  LosePrimary
      {Creating, {Refused, Refused, Happens, Refused,  Happens, Happens, Happens, Nothing}},
      {Resuming, {Refused, Refused, Happens, Refused,  Refused, Happens, Happens, Nothing}},
      {Ready,    {Happens, Refused, Happens, Nothing,  Refused, Refused, Refused, Happens}},
      {Stopping, {Nothing, Refused, Happens, Refused,  Refused, Happens, Happens, Nothing}},
      {Stopped,  {Refused, Happens, Happens, Refused,  Refused, Refused, Refused, Happens}},
      {Failed,   {Refused, Happens, Happens, Refused,  Refused, Refused, Refused, Nothing}},
      {Deleting, {Refused, Refused, Nothing, Refused,  Refused, Happens, Happens, Nothing}},
      {Deleted,  {Refused, Refused, Nothing, Refused,  Refused, Refused, Refused, Nothing}},
  });
  // clang-format on
}();

consteval bool rows_are_in_the_order_of_the_states() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (std::to_underlying(kTable[i].state) != static_cast<int>(i)) return false;
  }
  return kTable.size() == std::to_underlying(Lifecycle::Deleted) + 1;
}
static_assert(rows_are_in_the_order_of_the_states());

Verdict verdict_on(Lifecycle state, const LifecycleCommand& command) {
  const auto* resume = std::get_if<command::Resume>(&command);
  if (state == Lifecycle::Failed && resume != nullptr && !resume->has_containers) {
    return Verdict::Refused;
  }
  return kTable.at(static_cast<std::size_t>(std::to_underlying(state)))
      .by_command.at(command.index());
}

// " (idle_ttl)", or nothing if it is not known.
std::string in_brackets(const std::string& text) {
  return text.empty() ? std::string() : " (" + text + ")";
}

// The state and the remedy, for a caller that needs a ready sandbox.
std::string not_ready(const LifecycleStatus& lifecycle, const command::StartExec& exec) {
  switch (lifecycle.state) {
    case Lifecycle::Creating:
      return "it is being created; wait until it is ready";
    case Lifecycle::Resuming:
      return "it is being resumed; wait until it is ready";
    case Lifecycle::Stopping:
      return "it is being stopped" + in_brackets(lifecycle.reason) +
             "; resume it once it is stopped";
    case Lifecycle::Stopped:
      return "it is stopped" + in_brackets(lifecycle.reason) + "; resume it";
    case Lifecycle::Failed:
      return "it has failed" + in_brackets(exec.failure_code) +
             (exec.has_containers ? "; resume it" : "; delete it and create another");
    case Lifecycle::Deleting:
      return "it is being deleted" + in_brackets(lifecycle.reason) + "; create another";
    case Lifecycle::Deleted:
      return "it is deleted; create another";
    case Lifecycle::Ready:
      break;
  }
  die("a ready sandbox takes execs");
}

Error refusal(const std::string& sandbox_id, const LifecycleStatus& lifecycle,
              const LifecycleCommand& command) {
  const auto wrong_state = [&](Reason reason, const std::string& what) {
    return Error(reason, "sandbox " + sandbox_id + " " + what, {{"sandbox_id", sandbox_id}});
  };
  return std::visit(
      Overloaded{
          [&](const command::Stop&) {
            return wrong_state(reason::kSandboxInvalidState, "is not ready");
          },
          [&](const command::Resume&) {
            return wrong_state(reason::kSandboxInvalidState, "is not stopped");
          },
          [&](const command::StartExec& exec) {
            return wrong_state(reason::kSandboxNotReady,
                               "is not ready: " + not_ready(lifecycle, exec));
          },
          // What runs the operations speaks of the one under way; anything else is a bug of ours.
          [&](const auto&) {
            return wrong_state(reason::kInternal, "has no such operation under way");
          },
      },
      command);
}

LifecycleEvent success_of(const LifecycleStatus& lifecycle) {
  if (lifecycle.state == Lifecycle::Stopping) return event::Stopped{lifecycle.reason};
  if (lifecycle.state == Lifecycle::Deleting) return event::Deleted{lifecycle.reason};
  return event::Ready{};
}

LifecycleEvent event_of(const LifecycleStatus& lifecycle, const LifecycleCommand& command) {
  using Event = LifecycleEvent;
  return std::visit(
      Overloaded{
          [](const command::Stop& stop) { return Event(event::StopRequested{stop.reason}); },
          [](const command::Resume&) { return Event(event::Accepted{}); },
          [](const command::Delete& request) {
            return Event(event::DeleteRequested{request.reason});
          },
          [](const command::StartExec&) -> Event { die("an exec is no event of its sandbox"); },
          [](const command::Prepare& prepare) { return Event(event::Preparing{prepare.phase}); },
          [&](const command::Succeed&) { return success_of(lifecycle); },
          [](const command::Refuse& refuse) { return Event(event::Failed{refuse.failure}); },
          [](const command::LosePrimary& loss) { return Event(event::Failed{loss.failure}); },
      },
      command);
}

}  // namespace

Decision decide(const std::string& sandbox_id, const LifecycleStatus& lifecycle,
                const LifecycleCommand& command) {
  switch (verdict_on(lifecycle.state, command)) {
    case Verdict::Refused:
      return std::unexpected(refusal(sandbox_id, lifecycle, command));
    case Verdict::Nothing:
      return Events{};
    case Verdict::Happens:
      break;
  }
  return Events{event_of(lifecycle, command)};
}

LifecycleStatus apply(LifecycleStatus lifecycle, const LifecycleEvent& event) {
  const auto move_to = [](Lifecycle state, std::string reason = {}) {
    return LifecycleStatus{.state = state, .reason = std::move(reason)};
  };
  return std::visit(
      Overloaded{
          // The first event of all is Accepted too; there the life is Creating from the start.
          [&](const event::Accepted&) {
            return lifecycle.state == Lifecycle::Creating ? lifecycle
                                                          : move_to(Lifecycle::Resuming);
          },
          [&](const event::Preparing&) { return lifecycle; },
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

v1::SandboxEvent to_message(const std::string& sandbox_id, const LifecycleStatus& after,
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
            message.mutable_sandbox_phase()->set_error_message(e.message);
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
