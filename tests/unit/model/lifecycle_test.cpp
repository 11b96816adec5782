// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/lifecycle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "model/reasons.h"

namespace agbox {
namespace {

using enum Lifecycle;

constexpr std::array kStates = {Creating, Resuming, Ready,    Stopping,
                                Stopped,  Failed,   Deleting, Deleted};

struct Refused {
  Reason reason;
  std::string message;
};
using Nothing = std::monostate;  // accepted, no event
using Outcome = std::variant<Nothing, LifecycleEvent, Refused>;

struct Row {
  LifecycleCommand command;
  std::array<Outcome, kStates.size()> outcomes;  // in the order of kStates
};

const Failure kFailure{.code = "CODE", .message = "why"};
const Refused kNotReady{reason::kSandboxInvalidState, "sandbox s-1 is not ready"};
const Refused kNotStopped{reason::kSandboxInvalidState, "sandbox s-1 is not stopped"};
Refused no_exec(const std::string& state) {
  return {reason::kSandboxNotReady, "sandbox s-1 is not ready: " + state};
}
const Refused kBug{reason::kInternal, "sandbox s-1 has no such operation under way"};

// clang-format off
// The whole machine, written by hand: one row per command, one column per state.
const Row kTable[] = {
    //                                       Creating                       Resuming                       Ready                           Stopping                       Stopped                     Failed                          Deleting                       Deleted
    {command::Stop{"stop_requested"},       {kNotReady,                     kNotReady,                     event::StopRequested{"stop_requested"}, Nothing{},             kNotReady,                  kNotReady,                      kNotReady,                     kNotReady}},
    {command::Resume{true},                 {kNotStopped,                   kNotStopped,                   kNotStopped,                    kNotStopped,                   event::Accepted{},          event::Accepted{},              kNotStopped,                   kNotStopped}},
    {command::Delete{"d"},                  {event::DeleteRequested{"d"},   event::DeleteRequested{"d"},   event::DeleteRequested{"d"},    event::DeleteRequested{"d"},   event::DeleteRequested{"d"}, event::DeleteRequested{"d"},   Nothing{},                     Nothing{}}},
    {command::StartExec{"CODE", true},      {no_exec("it is being created; wait until it is ready"), no_exec("it is being resumed; wait until it is ready"), Nothing{}, no_exec("it is being stopped (because); resume it once it is stopped"), no_exec("it is stopped (because); resume it"), no_exec("it has failed (CODE); resume it"), no_exec("it is being deleted (because); create another"), no_exec("it is deleted; create another")}},
    {command::Prepare{"materialize"},       {event::Preparing{"materialize"}, kBug,                        kBug,                           kBug,                          kBug,                       kBug,                           kBug,                          kBug}},
    {command::Succeed{},                    {event::Ready{},                event::Ready{},                kBug,                           event::Stopped{"because"},     kBug,                       kBug,                           event::Deleted{"because"},     kBug}},
    {command::Refuse{kFailure},             {event::Failed{kFailure},       event::Failed{kFailure},       kBug,                           event::Failed{kFailure},       kBug,                       kBug,                           event::Failed{kFailure},       kBug}},
    {command::LosePrimary{kFailure},        {Nothing{},                     Nothing{},                     event::Failed{kFailure},        Nothing{},                     event::Failed{kFailure},    Nothing{},                      Nothing{},                     Nothing{}}},
};
// clang-format on

LifecycleStatus lifecycle_in(Lifecycle state) {
  const bool has_reason = state == Stopping || state == Stopped || state == Deleting;
  return {.state = state, .reason = has_reason ? "because" : ""};
}

TEST(Lifecycle, EveryCommandInEveryStateDoesWhatTheTableSays) {
  ASSERT_EQ(std::size(kTable), std::variant_size_v<LifecycleCommand>);
  for (const Row& row : kTable) {
    for (std::size_t i = 0; i < kStates.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "command " << row.command.index() << ", state " << i);
      const auto decision = decide("s-1", lifecycle_in(kStates[i]), row.command);
      if (const auto* refused = std::get_if<Refused>(&row.outcomes[i])) {
        ASSERT_FALSE(decision.has_value());
        EXPECT_EQ(decision.error().reason(), refused->reason);
        EXPECT_EQ(decision.error().message(), refused->message);
        EXPECT_EQ(decision.error().metadata().at("sandbox_id"), "s-1");
        continue;
      }
      ASSERT_TRUE(decision.has_value()) << decision.error().message();
      if (const auto* event = std::get_if<LifecycleEvent>(&row.outcomes[i])) {
        EXPECT_EQ(*decision, std::vector{*event});
      } else {
        EXPECT_TRUE(decision->empty());
      }
    }
  }
}

TEST(Lifecycle, AnExecInAFailedSandboxWithoutContainersIsToldToCreateAnother) {
  const auto refused = decide("s-1", lifecycle_in(Failed), command::StartExec{"CODE", false});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message(),
            "sandbox s-1 is not ready: it has failed (CODE); delete it and create another");
}

// As restored from a store that an earlier version wrote.
TEST(Lifecycle, AStoppedSandboxWithoutAReasonIsMerelyStopped) {
  const auto refused = decide("s-1", {.state = Stopped, .reason = {}}, command::StartExec{});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message(), "sandbox s-1 is not ready: it is stopped; resume it");
}

TEST(Lifecycle, AFailedSandboxWithoutContainersIsNotResumed) {
  const auto decision =
      decide("s-1", lifecycle_in(Failed), command::Resume{.has_containers = false});
  ASSERT_FALSE(decision.has_value());
  EXPECT_EQ(decision.error().reason(), reason::kSandboxInvalidState);
  EXPECT_EQ(decision.error().message(), "sandbox s-1 is not stopped");
}

TEST(Lifecycle, WhichFailuresLeaveTheContainers) {
  for (const char* code :
       {"SANDBOX_STOP_FAILED", "SANDBOX_RESUME_FAILED", "CONTAINER_CRASHLOOP", "CONTAINER_OOM"}) {
    EXPECT_TRUE(has_containers_after(code)) << code;
  }
  for (const char* code :
       {"", "SANDBOX_CREATE_FAILED", "SANDBOX_DELETE_FAILED", "CONTAINER_NOT_RUNNING",
        "NETWORK_MISSING", "GUEST_UNREACHABLE", "RECORD_UNREADABLE"}) {
    EXPECT_FALSE(has_containers_after(code)) << code;
  }
}

TEST(Lifecycle, EachCommandHasItsOwnRow) {
  for (std::size_t i = 0; i < std::size(kTable); ++i) EXPECT_EQ(kTable[i].command.index(), i);
}

TEST(Lifecycle, EventsMoveTheStateAndRememberTheReason) {
  EXPECT_EQ(apply(lifecycle_in(Creating), event::Accepted{}), lifecycle_in(Creating));
  EXPECT_EQ(apply(lifecycle_in(Stopped), event::Accepted{}), lifecycle_in(Resuming));
  EXPECT_EQ(apply(lifecycle_in(Failed), event::Accepted{}), lifecycle_in(Resuming));
  EXPECT_EQ(apply(lifecycle_in(Creating), event::Preparing{"materialize"}), lifecycle_in(Creating));
  EXPECT_EQ(apply(lifecycle_in(Resuming), event::Ready{}), lifecycle_in(Ready));
  EXPECT_EQ(apply(lifecycle_in(Ready), event::StopRequested{"because"}), lifecycle_in(Stopping));
  EXPECT_EQ(apply(lifecycle_in(Stopping), event::Stopped{"because"}), lifecycle_in(Stopped));
  EXPECT_EQ(apply(lifecycle_in(Stopping), event::DeleteRequested{"because"}),
            lifecycle_in(Deleting));
  EXPECT_EQ(apply(lifecycle_in(Deleting), event::Deleted{"because"}), lifecycle_in(Deleted));
  EXPECT_EQ(apply(lifecycle_in(Deleting), event::Failed{kFailure}), lifecycle_in(Failed));
}

TEST(Lifecycle, ADeletedSandboxNeverComesBack) {
  for (const Row& row : kTable) {
    const auto decision = decide("s-1", lifecycle_in(Deleted), row.command);
    if (decision) {
      EXPECT_TRUE(decision->empty());
    }
  }
}

TEST(Lifecycle, ClientsSeeStoppingAsReadyAndBothOperationsAsPending) {
  EXPECT_EQ(public_state(Creating), v1::SANDBOX_STATE_PENDING);
  EXPECT_EQ(public_state(Resuming), v1::SANDBOX_STATE_PENDING);
  EXPECT_EQ(public_state(Ready), v1::SANDBOX_STATE_READY);
  EXPECT_EQ(public_state(Stopping), v1::SANDBOX_STATE_READY);
  EXPECT_EQ(public_state(Stopped), v1::SANDBOX_STATE_STOPPED);
  EXPECT_EQ(public_state(Failed), v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(public_state(Deleting), v1::SANDBOX_STATE_DELETING);
  EXPECT_EQ(public_state(Deleted), v1::SANDBOX_STATE_DELETED);
}

TEST(Lifecycle, MessagesCarryTypeStateAndDetails) {
  struct MessageRow {
    Lifecycle before;
    LifecycleEvent event;
    v1::EventType type;
    v1::SandboxState state;
    std::optional<std::string> phase, code, message, reason;
  };
  const MessageRow rows[] = {
      {Creating,
       event::Accepted{},
       v1::SANDBOX_ACCEPTED,
       v1::SANDBOX_STATE_PENDING,
       {},
       {},
       {},
       {}},
      {Creating,
       event::Preparing{"materialize"},
       v1::SANDBOX_PREPARING,
       v1::SANDBOX_STATE_PENDING,
       "materialize",
       {},
       {},
       {}},
      {Creating, event::Ready{}, v1::SANDBOX_READY, v1::SANDBOX_STATE_READY, {}, {}, {}, {}},
      {Ready,
       event::Failed{kFailure},
       v1::SANDBOX_FAILED,
       v1::SANDBOX_STATE_FAILED,
       {},
       "CODE",
       "why",
       {}},
      {Ready,
       event::StopRequested{"idle_ttl"},
       v1::SANDBOX_STOP_REQUESTED,
       v1::SANDBOX_STATE_READY,
       {},
       {},
       {},
       "idle_ttl"},
      {Stopping,
       event::Stopped{"idle_ttl"},
       v1::SANDBOX_STOPPED,
       v1::SANDBOX_STATE_STOPPED,
       {},
       {},
       {},
       "idle_ttl"},
      {Stopped,
       event::DeleteRequested{"cleanup_ttl"},
       v1::SANDBOX_DELETE_REQUESTED,
       v1::SANDBOX_STATE_DELETING,
       {},
       {},
       {},
       "cleanup_ttl"},
      {Deleting,
       event::Deleted{"cleanup_ttl"},
       v1::SANDBOX_DELETED,
       v1::SANDBOX_STATE_DELETED,
       {},
       {},
       {},
       "cleanup_ttl"},
  };
  for (const MessageRow& row : rows) {
    const auto message = to_message("s-1", apply(lifecycle_in(row.before), row.event), row.event);
    SCOPED_TRACE(message.ShortDebugString());
    EXPECT_EQ(message.sandbox_id(), "s-1");
    EXPECT_EQ(message.event_type(), row.type);
    EXPECT_EQ(message.sandbox_state(), row.state);
    EXPECT_EQ(message.has_sandbox_phase(), row.phase || row.code || row.message || row.reason);
    EXPECT_EQ(message.sandbox_phase().phase(), row.phase.value_or(""));
    EXPECT_EQ(message.sandbox_phase().error_code(), row.code.value_or(""));
    EXPECT_EQ(message.sandbox_phase().error_message(), row.message.value_or(""));
    EXPECT_EQ(message.sandbox_phase().reason(), row.reason.value_or(""));
  }
}

}  // namespace
}  // namespace agbox
