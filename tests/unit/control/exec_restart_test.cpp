// SPDX-License-Identifier: Apache-2.0
// L9: execs go on while the daemon is away, and each runs exactly once, wherever it was killed.
#include "base/failpoint.h"
#include "model/exec/exec_request.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

using testing::ElementsAre;

class ExecRestartTest : public ExecTest {
 protected:
  void wait_connected() {
    run_until([&] { return guests_.is_connected(container()); });
  }
};

TEST_F(ExecRestartTest, RunningExecsStayRunningAndTheirRealEndArrives) {
  begin_exec("stays-1");
  const auto before = exec("stays-1");
  restart();
  EXPECT_EQ(exec("stays-1").SerializeAsString(), before.SerializeAsString());
  EXPECT_THAT(active(), ElementsAre("stays-1"));
  wait_connected();
  end_exec("stays-1", 3);
  wait_for_end("stays-1");
  EXPECT_EQ(exec("stays-1").exit_code(), 3);
  wait_forgotten("stays-1");
  EXPECT_EQ(times_begun("stays-1"), 1);
  EXPECT_THAT(exec_events(), ElementsAre("EXEC_STARTED stays-1", "EXEC_FAILED stays-1"));
}

TEST_F(ExecRestartTest, WhatEndsWhileNobodyListensIsToldLater) {
  begin_exec("away-1");
  begin_exec("away-2");
  stop();
  end_exec("away-1", 0);
  end_exec("away-2", 7);
  start();
  wait_for_end("away-1");
  wait_for_end("away-2");
  EXPECT_EQ(exec("away-1").state(), v1::EXEC_STATE_FINISHED);
  EXPECT_EQ(exec("away-2").exit_code(), 7);
  wait_forgotten("away-1");
  wait_forgotten("away-2");
}

// Where the daemon is killed while an exec is on its way, what comes after the failpoint has not
// happened.
TEST_F(ExecRestartTest, AnAcceptedExecRunsExactlyOnceWhereverTheDaemonEnds) {
  for (const char* point : {"exec.send.before", "exec.end.before", "exec.forget.before"}) {
    SCOPED_TRACE(point);
    std::string id = point;
    std::ranges::replace(id, '.', '-');
    ASSERT_TRUE(failpoint::arm(std::string(point) + "=error"));
    ASSERT_TRUE(create_exec(id).has_value());
    if (point != std::string("exec.send.before")) {
      wait_given(id);
      end_exec(id, 5);
      run_until([&] { return failpoint::passages(point) > 0; });
    }
    stop();
    disarm();
    start();
    wait_connected();
    if (point == std::string("exec.send.before")) {
      wait_given(id);
      end_exec(id, 5);
    }
    wait_for_end(id);
    EXPECT_EQ(exec(id).exit_code(), 5);
    wait_forgotten(id);
    EXPECT_EQ(times_begun(id), 1);
  }
}

TEST_F(ExecRestartTest, AnExecWhoseAcceptanceIsOnDiskIsGivenToTheGuest) {
  begin_accepting("silent-1", [](const auto&) {});
  ASSERT_TRUE(failpoint::arm("exec.send.before=error"));  // it is not sent
  stop();
  disarm();
  start();
  wait_given("silent-1");
  EXPECT_EQ(exec("silent-1").state(), v1::EXEC_STATE_RUNNING);
  EXPECT_EQ(times_begun("silent-1"), 1);
}

TEST_F(ExecRestartTest, OutputGoesOnInTheSameFiles) {
  ASSERT_TRUE(failpoint::arm("exec.send.before=error"));
  const auto created = create_exec("files-1").value();
  stop();
  disarm();
  std::filesystem::remove(created.stderr_log_path());
  start();
  wait_given("files-1");
  ASSERT_EQ(::write(given("files-1")->out.get(), "late", 4), 4);
  EXPECT_EQ(std::filesystem::file_size(created.stdout_log_path()), 4U);
  EXPECT_TRUE(std::filesystem::exists(created.stderr_log_path()));
}

// What an earlier daemon has recorded the end of, and could not tell the guest to forget.
TEST_F(ExecRestartTest, TheGuestForgetsWhatIsOnDiskAlready) {
  ASSERT_TRUE(failpoint::arm("exec.forget.before=error"));
  begin_exec("known-1");
  end_exec("known-1", 0);
  wait_for_end("known-1");
  stop();
  disarm();
  ASSERT_NE(given("known-1"), nullptr);
  start();
  wait_forgotten("known-1");
  EXPECT_EQ(exec("known-1").state(), v1::EXEC_STATE_FINISHED);
  EXPECT_THAT(exec_events(), ElementsAre("EXEC_STARTED known-1", "EXEC_FINISHED known-1"));
}

TEST_F(ExecRestartTest, ALostConnectionIsWaitedOut) {
  begin_exec("cut-1");
  guests_.cut(container());
  run_until([&] { return !guests_.is_connected(container()); });
  // Accepted while nobody could take it.
  ASSERT_TRUE(create_exec("cut-2").has_value());
  EXPECT_EQ(exec("cut-2").state(), v1::EXEC_STATE_RUNNING);
  wait_connected();
  wait_given("cut-2");
  end_exec("cut-1", 0);
  end_exec("cut-2", 0);
  wait_for_end("cut-1");
  wait_for_end("cut-2");
  EXPECT_THAT(guests_.begun(), ElementsAre("cut-1", "cut-2"));
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
}

TEST_F(ExecRestartTest, ManyInFlightOverManyLossesRunOnce) {
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(create_exec("flight-" + std::to_string(i)).has_value());
    if (i % 7 == 3) guests_.cut(container());
    if (i % 13 == 5) restart();
  }
  for (int i = 0; i < 40; ++i) {
    const std::string id = "flight-" + std::to_string(i);
    wait_given(id);
    end_exec(id, i);
  }
  for (int i = 0; i < 40; ++i) {
    const std::string id = "flight-" + std::to_string(i);
    wait_for_end(id);
    EXPECT_EQ(exec(id).exit_code(), i);
    EXPECT_EQ(times_begun(id), 1);
  }
  std::map<std::string, int> ends;
  for (const std::string& line : exec_events()) {
    if (!line.starts_with("EXEC_STARTED")) ++ends[line.substr(line.find(' '))];
  }
  EXPECT_EQ(ends.size(), 40U);
  for (const auto& [id, count] : ends) EXPECT_EQ(count, 1) << id;
}

}  // namespace
}  // namespace agbox
