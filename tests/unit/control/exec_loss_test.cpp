// SPDX-License-Identifier: Apache-2.0
// The guest is gone, and with it perhaps the container: what becomes of the execs and the sandbox.
#include "control/exec/exec_outcome.h"
#include "model/reasons.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ExecLossTest : public ExecTest {
 protected:
  // With its container, which is started again.
  void expect_lost(const std::string& exec_code, const std::string& words) {
    expect_failed(exec_code, words);
    EXPECT_THAT(exec_events(),
                ElementsAre("EXEC_STARTED lost-1", "EXEC_FAILED lost-1", "SANDBOX_PREPARING"));
  }
  void expect_failed(const std::string& exec_code, const std::string& words) {
    wait_for_end("lost-1");
    const v1::ExecStatus status = exec("lost-1");
    EXPECT_EQ(status.state(), v1::EXEC_STATE_FAILED);
    EXPECT_EQ(status.error_code(), exec_code);
    EXPECT_THAT(status.error(), HasSubstr(words));
    EXPECT_EQ(status.exit_code(), 0);
    EXPECT_THAT(active(), IsEmpty());
    EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  }
};

TEST_F(ExecLossTest, AContainerThatExitsEndsItsExecsFirst) {
  begin_exec("lost-1");
  end_container(137);
  expect_lost("CONTAINER_EXITED", "it exited with code 137");
}

TEST_F(ExecLossTest, OutOfMemoryIsCalledSo) {
  begin_exec("lost-1");
  end_container(137, true);
  expect_lost("CONTAINER_OOM", "out of memory");
}

TEST_F(ExecLossTest, OneThatCouldNotBeSentFailsWithTheReason) {
  begin_exec("lost-1");
  report_not_sent("lost-1", "too many descriptors in flight");
  expect_failed("EXEC_RUN_FAILED", "too many descriptors in flight");
  report_not_sent("lost-1", "again");
  report_not_sent("never-1", "unknown");
  settle();
  EXPECT_EQ(errors_of("lost-1"), "too many descriptors in flight\n");
  EXPECT_THAT(exec_events(), ElementsAre("EXEC_STARTED lost-1", "EXEC_FAILED lost-1"));
}

TEST_F(ExecLossTest, OneThatCouldNotBeSentAndWasCancelledIsCancelled) {
  guests_.script.cancel_ends_execs = false;
  create_ready("box-2");
  begin_exec("lost-1", {}, "box-2");
  ASSERT_TRUE(cancel_exec("lost-1").has_value());
  report_not_sent("lost-1", "too many descriptors in flight", "box-2");
  wait_for_end("lost-1");
  EXPECT_EQ(exec("lost-1").state(), v1::EXEC_STATE_CANCELLED);
  EXPECT_EQ(errors_of("lost-1"), "");
}

TEST_F(ExecLossTest, AContainerThatSomebodyRemovedIsLostWithItsSandbox) {
  begin_exec("lost-1");
  engine().containers.erase(engine().find_container(container())->id);
  engine().on_change();
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_THAT(exec_events(),
              ElementsAre("EXEC_STARTED lost-1", "EXEC_FAILED lost-1", "SANDBOX_FAILED"));
  EXPECT_EQ(exec("lost-1").error_code(), "CONTAINER_EXITED");
  EXPECT_THAT(exec("lost-1").error(), HasSubstr("it was removed"));
  EXPECT_EQ(handle(kBox).error_code(), "CONTAINER_NOT_RUNNING");
  EXPECT_EQ(create_exec("after-1").error().reason(), reason::kSandboxNotReady);
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
  EXPECT_THAT(docker().network_names(), IsEmpty());
}

TEST_F(ExecLossTest, WhatDiedWhileTheDaemonWasAwayIsFoundAtItsStart) {
  begin_exec("lost-1");
  stop();
  end_container(1);
  start();
  expect_lost("CONTAINER_EXITED", "it exited with code 1");
}

// Somebody restarted it by hand: another guest is in it now, which has nothing of ours.
TEST_F(ExecLossTest, AnotherStartOfTheContainerIsNotTheSameContainer) {
  begin_exec("lost-1");
  stop();
  fake::Container& found = *engine().find_container(container());
  end_container(0);
  found.status = "running";
  found.started_at = "2031-01-01T00:00:00Z";
  start();
  expect_lost("CONTAINER_EXITED", "started again by another program");
}

TEST_F(ExecLossTest, WhileTheEngineDoesNotAnswerNothingIsDecided) {
  begin_exec("lost-1");
  docker().stop_listening();
  end_container(9);
  run_until([&] { return !guests_.is_connected(container()); });
  run_until_idle();
  settle();
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  EXPECT_EQ(exec("lost-1").state(), v1::EXEC_STATE_RUNNING);
  docker().listen();
  expect_lost("CONTAINER_EXITED", "it exited with code 9");
}

// An engine in trouble says nothing about the container.
TEST_F(ExecLossTest, AnErrorOfTheEngineIsNoLoss) {
  begin_exec("lost-1");
  docker().reply("GET /containers/*/json", 500, R"({"message":"not now"})", 2);
  guests_.cut(container());
  run_until([&] { return guests_.is_connected(container()); });
  end_exec("lost-1", 0);
  wait_for_end("lost-1");
  EXPECT_EQ(exec("lost-1").state(), v1::EXEC_STATE_FINISHED);
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
}

// The connection ends before the engine knows: its own event makes us look once more.
TEST_F(ExecLossTest, ADeathThatTheEngineLearnsOfLaterIsSeen) {
  begin_exec("lost-1");
  guests_.script.connects = false;
  docker().hold("GET /containers/*/json");
  guests_.freeze(container());  // otherwise it may be back before the container is inspected
  guests_.cut(container());
  run_until([&] { return docker().held("GET /containers/*/json") == 1; });
  docker().clear_faults();
  end_container(6);
  docker().release("GET /containers/*/json");
  expect_lost("CONTAINER_EXITED", "it exited with code 6");
}

TEST_F(ExecLossTest, AnExecThatNoGuestWasGivenWaitsForTheContainer) {
  docker().hold("GET /containers/*/json");
  end_container(3);
  run_until([&] { return docker().held("GET /containers/*/json") == 1; });
  ASSERT_TRUE(create_exec("early-1").has_value());
  docker().release("GET /containers/*/json");
  run_until([&] { return restarts().next().has_value(); });
  settle();
  EXPECT_EQ(exec("early-1").state(), v1::EXEC_STATE_RUNNING);
  clock_.advance(std::chrono::milliseconds(100));
  restarts().call_due();
  wait_given("early-1");
  EXPECT_EQ(times_begun("early-1"), 1);
}

// --- a delete ---

TEST_F(ExecLossTest, ADeleteEndsWhatRunsBeforeItself) {
  begin_exec("gone-a");
  begin_exec("gone-b");
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
  EXPECT_THAT(exec_events(),
              ElementsAre("EXEC_STARTED gone-a", "EXEC_STARTED gone-b", "SANDBOX_DELETE_REQUESTED",
                          "EXEC_CANCELLED gone-a", "EXEC_CANCELLED gone-b", "SANDBOX_DELETED"));
  EXPECT_EQ(exec("gone-a").state(), v1::EXEC_STATE_CANCELLED);
  EXPECT_EQ(exec("gone-a").last_event_sequence(), handle(kBox).last_event_sequence());
  EXPECT_THAT(active(), IsEmpty());
  restart();
  EXPECT_EQ(exec("gone-b").state(), v1::EXEC_STATE_CANCELLED);
  EXPECT_EQ(list_execs()->execs_size(), 2);
  // Its output can be read for as long as its history.
  std::optional<Result<ExecOutputSource>> found;
  directory().find_exec_output("gone-a", [] {}, [&](auto r) { found = std::move(r); });
  run_until([&] { return found.has_value(); });
  EXPECT_TRUE(std::filesystem::exists((*found)->stdout_path));
  EXPECT_EQ((*found)->limit_bytes, exec_output_max_);
}

TEST_F(ExecLossTest, ADeleteThatWasInterruptedEndsThemToo) {
  begin_exec("gone-1");
  remove_held_at(kBox, "delete.networks.after");
  EXPECT_EQ(exec("gone-1").state(), v1::EXEC_STATE_RUNNING);
  stop();
  disarm();
  start();
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
  EXPECT_EQ(exec("gone-1").state(), v1::EXEC_STATE_CANCELLED);
  EXPECT_EQ(exec_events().back(), "SANDBOX_DELETED");
}

TEST_F(ExecLossTest, AfterADeleteThatFailedItsExecsGoOnAndEndHonestly) {
  begin_exec("lost-1");
  begin_exec("real-1");
  docker().reply("DELETE /containers/*", 500, R"({"message":"device busy"})");
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle(kBox).error_code(), "SANDBOX_DELETE_FAILED");
  end_exec("real-1", 4);
  wait_for_end("real-1");
  EXPECT_EQ(exec("real-1").exit_code(), 4);
  restart();
  EXPECT_EQ(exec("lost-1").state(), v1::EXEC_STATE_RUNNING);
  end_container(8);
  wait_for_end("lost-1");
  EXPECT_EQ(exec("lost-1").error_code(), "CONTAINER_EXITED");
  EXPECT_EQ(handle(kBox).error_code(), "SANDBOX_DELETE_FAILED");
}

// Whether its execs run is all that is asked then.
TEST_F(ExecLossTest, AfterADeleteThatFailedALookStopsNothing) {
  begin_exec("real-1");
  guests_.freeze(container());
  guests_.cut(container());
  run_until([&] { return !guests_.is_connected(container()); });
  docker().forget_calls();
  docker().reply("DELETE /containers/*", 500, R"({"message":"device busy"})");
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  run_until([&] { return docker().calls("GET /containers/*/json") > 0; });
  run_until_idle();
  settle();
  EXPECT_TRUE(primary(kBox).is_running());
  EXPECT_EQ(exec("real-1").state(), v1::EXEC_STATE_RUNNING);
  guests_.thaw(container());
  end_exec("real-1", 4);
  wait_for_end("real-1");
  EXPECT_EQ(exec("real-1").exit_code(), 4);
}

TEST_F(ExecLossTest, ADeleteThatFailedAfterTheContainerWentEndsItsExecs) {
  begin_exec("lost-1");
  docker().reply("DELETE /networks/*", 500, R"({"message":"network is in use"})");
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  wait_for_end("lost-1");
  EXPECT_EQ(exec("lost-1").error_code(), "CONTAINER_EXITED");
  EXPECT_THAT(exec("lost-1").error(), HasSubstr("it was removed"));
  EXPECT_THAT(active(), IsEmpty());
}

// --- the judgements alone ---

using How = ExecEnd::How;

TEST(ExecOutcomeTest, IsWhatTheGuestTold) {
  const auto outcome = [](How how, int code, const std::string& detail = "",
                          bool was_cancel_requested = false) {
    return outcome_of(ExecEnd{.exec_id = "x", .how = how, .code = code, .detail = detail},
                      was_cancel_requested);
  };
  const auto failed = [](int code, const std::string& message) {
    return ExecOutcome{.state = v1::EXEC_STATE_FAILED,
                       .exit_code = code,
                       .error_code = "EXEC_RUN_FAILED",
                       .error_message = message};
  };
  const ExecOutcome finished{
      .state = v1::EXEC_STATE_FINISHED, .exit_code = 0, .error_code = {}, .error_message = {}};
  EXPECT_EQ(outcome(How::Exited, 0), finished);
  EXPECT_EQ(outcome(How::Exited, 3), failed(3, "exit code 3"));
  EXPECT_EQ(outcome(How::Exited, 255), failed(255, "exit code 255"));
  EXPECT_EQ(outcome(How::Signaled, 15), failed(143, "killed by signal 15"));
  EXPECT_EQ(outcome(How::Signaled, 9, "out of memory"),
            failed(137, "killed by signal 9: out of memory"));
  EXPECT_EQ(outcome(How::Exited, 137, "out of memory"),
            failed(137, "exit code 137: out of memory"));
  EXPECT_EQ(outcome(How::NotStarted, 127, "nosuch: not found"), failed(127, "nosuch: not found"));
  EXPECT_EQ(outcome(How::NotStarted, 126), failed(126, "the command could not be started"));
  EXPECT_EQ(outcome(How::Cancelled, 0, "", true), cancelled_outcome());
  EXPECT_EQ(outcome(How::Cancelled, 0).state, v1::EXEC_STATE_FAILED);
  EXPECT_EQ(outcome(How::Exited, 0, "", true), finished);
  EXPECT_THAT(outcome(How::RunnerLost, 0).error_message, HasSubstr("its runner was killed"));
}

TEST(ContainerLossTest, ACrashLoopIsToldByItsLastEnd) {
  const Failure crashed =
      crash_failure({.is_out_of_memory = false, .how = "it exited with code 2"});
  EXPECT_EQ(crashed.code, "CONTAINER_CRASHLOOP");
  EXPECT_THAT(crashed.message, HasSubstr("primary container exited: it exited with code 2"));
  const Failure oom = crash_failure({.is_out_of_memory = true, .how = "it ran out of memory"});
  EXPECT_EQ(oom.code, "CONTAINER_OOM");
  EXPECT_THAT(oom.message, HasSubstr("primary container OOM killed"));
}

}  // namespace
}  // namespace agbox
