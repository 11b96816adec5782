// SPDX-License-Identifier: Apache-2.0
// What a client is answered in each state of a sandbox, operations under way included, and what it
// changes: every call in every state.
#include <array>

#include "base/failpoint.h"
#include "model/reasons.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

using testing::IsEmpty;
using testing::StartsWith;

struct CallCase {
  const char* call;
  const char* state;
  char then;
};

constexpr std::array kLifecycleStates{"Creating", "Resuming", "Ready",    "Stopping",
                                      "Stopped",  "Failed",   "Deleting", "Deleted"};

// One letter for each of kStatesOfLife: ! accepted with its event, = accepted without one, else
// refused: r not ready, s not stopped, x no exec.
struct CallRow {
  const char* call;
  const char* then;
};
constexpr std::array kCallRows{CallRow{"Stop", "rr!=rrrr"}, CallRow{"Resume", "ssss!!ss"},
                               CallRow{"Delete", "!!!!!!=="}, CallRow{"Exec", "xx!xxxxx"}};

std::vector<CallCase> call_cases() {
  std::vector<CallCase> cases;
  for (const CallRow& row : kCallRows) {
    for (std::size_t i = 0; i < kLifecycleStates.size(); ++i) {
      cases.push_back({row.call, kLifecycleStates.at(i), row.then[i]});
    }
  }
  return cases;
}

class CallsByStateTest : public ExecTest, public testing::WithParamInterface<CallCase> {
 protected:
  static constexpr const char* kOne = "one-1";

  // kOne, held there where it would leave the state by itself.
  void bring_to(std::string_view wanted) {
    if (wanted == "Creating") return create_held_at(kOne, "create.network.after");
    create_ready(kOne);
    if (wanted == "Failed") {
      docker().reply("POST /containers/*/stop", 500, R"({"message":"device is busy"})",
                     kStopRefusalsForgiven + 1);
      ASSERT_TRUE(ask_stop(kOne).has_value());
      return wait_for_state(kOne, v1::SANDBOX_STATE_FAILED);
    }
    if (wanted == "Deleting") return remove_held_at(kOne, "delete.containers.before");
    if (wanted == "Deleted") {
      ASSERT_TRUE(remove(kOne).has_value());
      return wait_for_state(kOne, v1::SANDBOX_STATE_DELETED);
    }
    if (wanted == "Stopping") {
      ASSERT_TRUE(failpoint::arm("stop.container.before=hold"));
      ASSERT_TRUE(ask_stop(kOne).has_value());
      return wait_held_at("stop.container.before");
    }
    if (wanted == "Stopped" || wanted == "Resuming") stop_sandbox(kOne);
    if (wanted == "Resuming") {
      ASSERT_TRUE(failpoint::arm("resume.network.before=hold"));
      ASSERT_TRUE(ask_resume(kOne).has_value());
      wait_held_at("resume.network.before");
    }
  }

  Result<> call(std::string_view name) {
    if (name == "Stop") return ask_stop(kOne);
    if (name == "Resume") return ask_resume(kOne);
    if (name == "Delete") return remove(kOne);
    const auto created = create_exec(request("its-exec", {}, kOne));
    if (!created) return std::unexpected(created.error());
    return {};
  }

  void expect_refused(const Result<>& answer, Reason reason, const char* words) {
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().reason(), reason);
    EXPECT_EQ(answer.error().message(), std::string("sandbox one-1 ") + words);
    EXPECT_EQ(answer.error().metadata().at("sandbox_id"), kOne);
  }

  static v1::SandboxState state_after(std::string_view call) {
    if (call == "Resume") return v1::SANDBOX_STATE_PENDING;
    return call == "Delete" ? v1::SANDBOX_STATE_DELETING : v1::SANDBOX_STATE_READY;
  }
  static v1::EventType event_of(std::string_view call) {
    if (call == "Stop") return v1::SANDBOX_STOP_REQUESTED;
    if (call == "Resume") return v1::SANDBOX_ACCEPTED;
    if (call == "Delete") return v1::SANDBOX_DELETE_REQUESTED;
    return v1::EXEC_STARTED;
  }
};

TEST_P(CallsByStateTest, IsAnsweredAsTheTableSays) {
  const CallCase& wanted = GetParam();
  bring_to(wanted.state);
  const auto before = handle(kOne);
  const auto answer = call(wanted.call);
  const auto next = events(kOne, before.last_event_sequence());
  switch (wanted.then) {
    case '!':
      ASSERT_TRUE(answer.has_value()) << answer.error().message();
      ASSERT_FALSE(next.empty());
      EXPECT_EQ(next.front().event.event_type(), event_of(wanted.call));
      EXPECT_EQ(next.front().event.sandbox_state(), state_after(wanted.call));
      return;
    case '=':
      ASSERT_TRUE(answer.has_value()) << answer.error().message();
      break;
    case 'r':
      expect_refused(answer, reason::kSandboxInvalidState, "is not ready");
      break;
    case 's':
      expect_refused(answer, reason::kSandboxInvalidState, "is not stopped");
      break;
    default:
      ASSERT_FALSE(answer.has_value());
      EXPECT_EQ(answer.error().reason(), reason::kSandboxNotReady);
      EXPECT_THAT(answer.error().message(), StartsWith("sandbox one-1 is not ready: it "));
      EXPECT_EQ(answer.error().metadata().at("sandbox_id"), kOne);
  }
  EXPECT_THAT(next, IsEmpty());
  EXPECT_EQ(handle(kOne).SerializeAsString(), before.SerializeAsString());
}

INSTANTIATE_TEST_SUITE_P(Every, CallsByStateTest, testing::ValuesIn(call_cases()),
                         [](const auto& info) {
                           return std::string(info.param.call) + "While" + info.param.state;
                         });

// Otherwise a crash could undo what the caller was told.
TEST_F(ExecTest, ARefusalIsReportedOnceItsCauseIsOnDisk) {
  create_ready("one-1");
  hold_store();
  std::optional<Result<>> stopped;
  std::optional<Result<>> resumed;
  std::optional<Result<v1::CreateExecResponse>> started;
  directory().stop("one-1", [&](auto result) { stopped = std::move(result); });
  directory().resume("one-1", [&](auto result) { resumed = std::move(result); });
  directory().create_exec("one-1", parse_exec_request(request("its-exec", {}, "one-1")),
                          [&](auto result) { started = std::move(result); });
  run_until_idle();
  EXPECT_FALSE(stopped.has_value());
  EXPECT_FALSE(resumed.has_value());
  EXPECT_FALSE(started.has_value());
  release_store();
  run_until([&] { return stopped && resumed && started; });
  EXPECT_TRUE(stopped->has_value());
  EXPECT_EQ(resumed->error().reason(), reason::kSandboxInvalidState);
  EXPECT_EQ(started->error().reason(), reason::kSandboxNotReady);
}

}  // namespace
}  // namespace agbox
