// SPDX-License-Identifier: Apache-2.0
// L3: a cancel is a wish that is stored, passed on, and over only when nothing runs any more.
#include "base/failpoint.h"
#include "model/exec/exec_request.h"
#include "model/reasons.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ExecCancelTest : public ExecTest {};

guest::v1::ExecEnded cancelled_end() {
  guest::v1::ExecEnded end;
  end.set_how(guest::v1::ExecEnded::HOW_CANCELLED);
  return end;
}

TEST_F(ExecCancelTest, IsOverOnlyWhenTheGuestSaysSo) {
  guests_.script.cancel_ends_execs = false;
  create_ready("box-2");
  begin_exec("slow-1", {}, "box-2");
  ASSERT_TRUE(cancel_exec("slow-1").has_value());
  run_until([&] { return given("slow-1", "box-2")->cancel.has_value(); });
  EXPECT_EQ(given("slow-1", "box-2")->cancel->grace_ms(), 2000U);
  EXPECT_EQ(exec("slow-1").state(), v1::EXEC_STATE_RUNNING);
  EXPECT_TRUE(exec("slow-1").cancel_requested());
  EXPECT_THAT(exec_events("box-2"), ElementsAre("EXEC_STARTED slow-1"));
  guests_.end_exec(container("box-2"), "slow-1", cancelled_end());
  wait_for_end("slow-1");
  EXPECT_EQ(exec("slow-1").state(), v1::EXEC_STATE_CANCELLED);
  EXPECT_EQ(exec("slow-1").exit_code(), 0);
  EXPECT_THAT(exec_events("box-2"), ElementsAre("EXEC_STARTED slow-1", "EXEC_CANCELLED slow-1"));
}

TEST_F(ExecCancelTest, ASecondOneIsAcceptedSilentlyAndOneOfAnEndedExecIsNot) {
  guests_.script.cancel_ends_execs = false;
  create_ready("box-2");
  begin_exec("twice-1", {}, "box-2");
  std::vector<Result<>> replies;
  for (int i = 0; i < 3; ++i) {
    directory().cancel_exec("twice-1", [&](auto result) { replies.push_back(std::move(result)); });
  }
  run_until([&] { return replies.size() == 3; });
  for (const auto& reply : replies) EXPECT_TRUE(reply.has_value());
  guests_.end_exec(container("box-2"), "twice-1", cancelled_end());
  wait_for_end("twice-1");
  const auto late = cancel_exec("twice-1");
  EXPECT_EQ(late.error().reason(), reason::kExecAlreadyTerminal);
  EXPECT_EQ(late.error().message(), "exec twice-1 is already terminal");
  EXPECT_EQ(cancel_exec("never-1").error().message(), "exec never-1 was not found");
}

// The cancel came too late: what it was is what counts.
TEST_F(ExecCancelTest, WhatEndedByItselfIsWhatItWas) {
  guests_.script.cancel_ends_execs = false;
  create_ready("box-2");
  begin_exec("late-1", {}, "box-2");
  ASSERT_TRUE(cancel_exec("late-1").has_value());
  guests_.end_exec(container("box-2"), "late-1", 0);
  wait_for_end("late-1");
  EXPECT_EQ(exec("late-1").state(), v1::EXEC_STATE_FINISHED);
  EXPECT_TRUE(exec("late-1").cancel_requested());
}

TEST_F(ExecCancelTest, WhoAsksWhileItEndsIsToldThatItHas) {
  begin_exec("race-1");
  report_end("race-1");
  EXPECT_THAT(active(), ElementsAre("race-1"));  // not on disk yet
  const auto late = cancel_exec("race-1");
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().reason(), reason::kExecAlreadyTerminal);
  EXPECT_EQ(exec("race-1").state(), v1::EXEC_STATE_FINISHED);
  EXPECT_THAT(exec_events(), ElementsAre("EXEC_STARTED race-1", "EXEC_FINISHED race-1"));
}

TEST_F(ExecCancelTest, WhatTheGuestNeverGotIsCancelledWithoutARun) {
  ASSERT_TRUE(failpoint::arm("exec.send.before=error"));
  ASSERT_TRUE(create_exec("unsent-1").has_value());
  ASSERT_TRUE(cancel_exec("unsent-1").has_value());
  disarm();
  EXPECT_EQ(exec("unsent-1").state(), v1::EXEC_STATE_RUNNING);
  guests_.cut(container());
  wait_for_end("unsent-1");
  EXPECT_EQ(exec("unsent-1").state(), v1::EXEC_STATE_CANCELLED);
  EXPECT_THAT(guests_.begun(), IsEmpty());
}

TEST_F(ExecCancelTest, AWishThatWasLostOnTheWayIsPassedOnAgain) {
  begin_exec("lost-1");
  ASSERT_TRUE(failpoint::arm("exec.cancel_send.before=error"));
  ASSERT_TRUE(cancel_exec("lost-1").has_value());
  disarm();
  EXPECT_EQ(exec("lost-1").state(), v1::EXEC_STATE_RUNNING);
  guests_.cut(container());
  wait_for_end("lost-1");
  EXPECT_EQ(exec("lost-1").state(), v1::EXEC_STATE_CANCELLED);
}

TEST_F(ExecCancelTest, AWishOutlivesTheDaemon) {
  begin_exec("restart-1");
  ASSERT_TRUE(failpoint::arm("exec.cancel_send.before=error"));
  ASSERT_TRUE(cancel_exec("restart-1").has_value());
  stop();
  disarm();
  start();
  EXPECT_TRUE(exec("restart-1").cancel_requested());
  wait_for_end("restart-1");
  EXPECT_EQ(exec("restart-1").state(), v1::EXEC_STATE_CANCELLED);
  EXPECT_EQ(times_begun("restart-1"), 1);
}

TEST_F(ExecCancelTest, OneWhoseAcceptanceIsOvertakenByADeleteIsCancelledAlsoWhereThatFails) {
  docker().reply("DELETE /containers/*", 500, R"({"message":"device is busy"})");
  std::optional<Result<v1::CreateExecResponse>> created;
  std::optional<Result<>> removed;
  begin_accepting(
      "late-1", [&](auto result) { created = std::move(result); },
      [&] { directory().remove(kBox, [&](auto result) { removed = std::move(result); }); });
  run_until([&] { return created.has_value() && removed.has_value(); });
  ASSERT_TRUE(created->has_value() && removed->has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  settle();
  EXPECT_EQ(exec("late-1").state(), v1::EXEC_STATE_CANCELLED);
  EXPECT_EQ(times_begun("late-1"), 0);
  EXPECT_THAT(active(), IsEmpty());
}

// A guest that lies about its own exec gets no state that nobody asked for.
TEST_F(ExecCancelTest, NothingIsCancelledThatNobodyAskedToCancel) {
  begin_exec("liar-1");
  guests_.end_exec(container(), "liar-1", cancelled_end());
  wait_for_end("liar-1");
  EXPECT_EQ(exec("liar-1").state(), v1::EXEC_STATE_FAILED);
}

}  // namespace
}  // namespace agbox
