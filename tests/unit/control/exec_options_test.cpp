// SPDX-License-Identifier: Apache-2.0
// The user and the timeout of an exec.
#include "base/failpoint.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class ExecOptionsTest : public ExecTest {
 protected:
  static ChangeRequest limited_to(std::int64_t seconds) {
    return [seconds](v1::CreateExecRequest& r) { r.mutable_timeout()->set_seconds(seconds); };
  }
  void pass(std::chrono::nanoseconds time) {
    clock_.advance(time);
    exec_timeouts().call_due();
  }
  void expect_timeout(const std::string& exec_id) {
    wait_for_end(exec_id);
    const v1::ExecStatus ended = exec(exec_id);
    EXPECT_EQ(ended.state(), v1::EXEC_STATE_CANCELLED);
    EXPECT_EQ(ended.error_code(), "TIMEOUT");
    EXPECT_EQ(ended.error(), "it took longer than its timeout of 60 s");
    EXPECT_EQ(ended.exit_code(), 0);
  }
};

TEST_F(ExecOptionsTest, TheGuestGetsTheUser) {
  begin_exec("as-root", [](auto& r) { r.set_user("root"); });
  EXPECT_EQ(given("as-root")->order.user(), "root");
  EXPECT_EQ(exec("as-root").user(), "root");
  begin_exec("as-agbox");
  EXPECT_EQ(given("as-agbox")->order.user(), "");
}

TEST_F(ExecOptionsTest, AnExecThatTakesTooLongIsCancelledWithTheReason) {
  begin_exec("slow-1", limited_to(60));
  EXPECT_EQ(exec("slow-1").timeout().seconds(), 60);
  pass(60s - 1ms);
  settle();
  EXPECT_FALSE(exec("slow-1").cancel_requested());
  pass(1ms);
  expect_timeout("slow-1");
  EXPECT_THAT(exec_events(), ElementsAre("EXEC_STARTED slow-1", "EXEC_CANCELLED slow-1"));
  EXPECT_FALSE(exec_timeouts().next().has_value());
}

TEST_F(ExecOptionsTest, TheShortestTimeoutComesFirst) {
  begin_exec("long-1", limited_to(100));
  begin_exec("short-1", limited_to(60));
  pass(60s);
  expect_timeout("short-1");
  EXPECT_EQ(exec("long-1").state(), v1::EXEC_STATE_RUNNING);
  EXPECT_EQ(*exec_timeouts().next() - clock_.boot_now(), 40s);
}

TEST_F(ExecOptionsTest, OneThatEndsInTimeIsWhatItWas) {
  begin_exec("fast-1", limited_to(60));
  end_exec("fast-1", 0);
  wait_for_end("fast-1");
  EXPECT_FALSE(exec_timeouts().next().has_value());
  pass(60s);
  EXPECT_EQ(exec("fast-1").state(), v1::EXEC_STATE_FINISHED);
}

TEST_F(ExecOptionsTest, OneThatWasCancelledBeforeHasNotTimedOut) {
  guests_.script.cancel_ends_execs = false;
  create_ready("box-2");
  begin_exec("both-1", limited_to(60), "box-2");
  ASSERT_TRUE(cancel_exec("both-1").has_value());
  pass(60s);
  guest::v1::ExecEnded end;
  end.set_how(guest::v1::ExecEnded::HOW_CANCELLED);
  guests_.end_exec(container("box-2"), "both-1", end);
  wait_for_end("both-1");
  EXPECT_EQ(exec("both-1").error_code(), "");
}

TEST_F(ExecOptionsTest, ALaterDaemonContinuesToCount) {
  begin_exec("over-1", limited_to(60));
  clock_.advance(20s);
  restart();
  EXPECT_EQ(*exec_timeouts().next() - clock_.boot_now(), 40s);
  pass(40s);
  expect_timeout("over-1");
}

TEST_F(ExecOptionsTest, WhatPassedWhileNoDaemonRanIsEndedByTheNext) {
  begin_exec("away-1", limited_to(60));
  stop();
  clock_.advance(1h);
  start();
  exec_timeouts().call_due();
  expect_timeout("away-1");
}

TEST_F(ExecOptionsTest, ATimeoutThatIsOnDiskIsNotForgotten) {
  begin_exec("kept-1", limited_to(60));
  ASSERT_TRUE(failpoint::arm("exec.cancel_send.before=error"));
  pass(60s);
  run_until([] { return failpoint::passages("exec.cancel_send.before") > 0; });
  stop();
  disarm();
  start();
  EXPECT_TRUE(exec("kept-1").cancel_requested());
  expect_timeout("kept-1");
}

TEST_F(ExecOptionsTest, AChangedDateChangesNothing) {
  begin_exec("date-1", limited_to(60));
  clock_.jump_wall(24h);
  restart();
  EXPECT_EQ(*exec_timeouts().next() - clock_.boot_now(), 60s);
}

}  // namespace
}  // namespace agbox
