// SPDX-License-Identifier: Apache-2.0
// A stop at every moment: execs end first, the container stays, and nothing comes twice.
#include <boost/asio/post.hpp>
#include <future>

#include "base/failpoint.h"
#include "model/reasons.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class StopTest : public ExecTest {
 protected:
  void stop_held_at(const std::string& failpoint, const std::string& id = kBox) {
    ASSERT_TRUE(failpoint::arm(failpoint + "=hold"));
    ASSERT_TRUE(ask_stop(id).has_value());
    wait_held_at(failpoint);
  }
  // Everything since it was ready: types, states and reasons.
  std::vector<std::string> story(const std::string& id = kBox) {
    std::vector<std::string> lines;
    for (const Seen& seen : events(id, 3)) {
      std::string line = v1::EventType_Name(seen.event.event_type()) + " " +
                         v1::SandboxState_Name(seen.event.sandbox_state());
      if (seen.event.has_exec()) line += " " + seen.event.exec().exec_id();
      if (seen.event.has_sandbox_phase()) line += " " + seen.event.sandbox_phase().reason();
      lines.push_back(std::move(line));
    }
    return lines;
  }
};

TEST_F(StopTest, AStoppedSandboxKeepsItsContainerAndItsNetwork) {
  const std::string container_id = primary(kBox).id;
  ASSERT_TRUE(ask_stop(kBox).has_value());
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
  EXPECT_THAT(story(), ElementsAre("SANDBOX_STOP_REQUESTED SANDBOX_STATE_READY stop_requested",
                                   "SANDBOX_STOPPED SANDBOX_STATE_STOPPED stop_requested"));
  EXPECT_EQ(primary(kBox).id, container_id);
  EXPECT_FALSE(primary(kBox).is_running());
  EXPECT_EQ(primary(kBox).stop_timeout, "5");
  EXPECT_EQ(network_names().size(), 1U);
  EXPECT_EQ(link_directories().size(), 1U);
}

TEST_F(StopTest, AStopAsksTheEngineOnce) {
  run_until([&] { return docker().event_streams() == 1; });
  docker().forget_calls();
  stop_sandbox(kBox);
  EXPECT_THAT(docker().call_log(), ElementsAre(testing::EndsWith("/stop")));
}

// The engine may take its five seconds: nobody else waits for them, and none of it is polled.
TEST_F(StopTest, ExecsEndBeforeTheSandboxIsStopped) {
  begin_exec("one-1");
  begin_exec("two-2");
  stop_sandbox(kBox);
  EXPECT_THAT(story(), ElementsAre("EXEC_STARTED SANDBOX_STATE_READY one-1",
                                   "EXEC_STARTED SANDBOX_STATE_READY two-2",
                                   "SANDBOX_STOP_REQUESTED SANDBOX_STATE_READY stop_requested",
                                   "EXEC_CANCELLED SANDBOX_STATE_READY one-1",
                                   "EXEC_CANCELLED SANDBOX_STATE_READY two-2",
                                   "SANDBOX_STOPPED SANDBOX_STATE_STOPPED stop_requested"));
  EXPECT_EQ(exec("one-1").state(), v1::EXEC_STATE_CANCELLED);
  EXPECT_THAT(active(), IsEmpty());
}

TEST_F(StopTest, TheGuestGetsTwoSecondsForEachExecBeforeTheContainerIsStopped) {
  stop();
  guests_.script.cancel_ends_execs = false;
  start();
  create_ready("box-2");
  begin_exec("slow-1", {}, "box-2");
  ASSERT_TRUE(ask_stop("box-2").has_value());
  run_until([&] { return given("slow-1", "box-2")->cancel.has_value(); });
  EXPECT_EQ(given("slow-1", "box-2")->cancel->grace_ms(), 2000U);
  settle();
  EXPECT_TRUE(primary("box-2").is_running());
  // What it had already come to before the cancel reached it is what it was.
  guests_.end_exec(container("box-2"), "slow-1", 7);
  wait_for_state("box-2", v1::SANDBOX_STATE_STOPPED);
  EXPECT_EQ(exec("slow-1").state(), v1::EXEC_STATE_FAILED);
  EXPECT_EQ(exec("slow-1").exit_code(), 7);
}

TEST_F(StopTest, AnExecThatDoesNotEndEndsWithItsContainer) {
  stop();
  guests_.script.cancel_ends_execs = false;
  start();
  create_ready("box-2");
  begin_exec("stuck-1", {}, "box-2");
  stop_sandbox("box-2");
  EXPECT_EQ(exec("stuck-1").state(), v1::EXEC_STATE_CANCELLED);
  EXPECT_THAT(exec_events("box-2"), ElementsAre("EXEC_STARTED stuck-1", "SANDBOX_STOP_REQUESTED",
                                                "EXEC_CANCELLED stuck-1", "SANDBOX_STOPPED"));
}

// L10
TEST_F(StopTest, ASecondStopIsAcceptedAndAddsNothing) {
  stop_held_at("stop.container.before");
  EXPECT_TRUE(ask_stop(kBox).has_value());
  EXPECT_EQ(handle(kBox).last_event_sequence(), 4U);
  const auto late = create_exec("late-1");
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().reason(), reason::kSandboxNotReady);
  EXPECT_EQ(
      late.error().message(),
      "sandbox box-1 is not ready: it is being stopped (stop_requested); resume it once it is "
      "stopped");
  const auto resumed = ask_resume(kBox);
  ASSERT_FALSE(resumed.has_value());
  EXPECT_EQ(resumed.error().reason(), reason::kSandboxInvalidState);
  EXPECT_EQ(resumed.error().message(), "sandbox box-1 is not stopped");
}

TEST_F(StopTest, WhatIsNotReadyIsRefused) {
  stop_sandbox(kBox);
  const auto again = ask_stop(kBox);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().reason(), reason::kSandboxInvalidState);
  EXPECT_EQ(again.error().message(), "sandbox box-1 is not ready");
  EXPECT_EQ(again.error().metadata().at("sandbox_id"), kBox);
  EXPECT_EQ(ask_stop("nobody").error().reason(), reason::kSandboxNotFound);
  EXPECT_EQ(create_exec("late-1").error().reason(), reason::kSandboxNotReady);
}

// An exec whose acceptance is on its way to the disk when the stop is decided never runs.
TEST_F(StopTest, AnExecInTheMomentOfTheStopIsCancelled) {
  std::optional<Result<v1::CreateExecResponse>> created;
  std::optional<Result<>> stopped;
  begin_accepting(
      "edge-1", [&](auto reply) { created = std::move(reply); },
      [&] { directory().stop(kBox, [&](auto reply) { stopped = std::move(reply); }); });
  run_until([&] { return created.has_value() && stopped.has_value(); });
  EXPECT_TRUE(created->has_value());
  EXPECT_TRUE(stopped->has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
  EXPECT_EQ(times_begun("edge-1"), 0);
  EXPECT_THAT(exec_events(), ElementsAre("EXEC_STARTED edge-1", "SANDBOX_STOP_REQUESTED",
                                         "EXEC_CANCELLED edge-1", "SANDBOX_STOPPED"));
}

TEST_F(StopTest, AnExecWhoseFilesCannotBeCreatedYetHoldsNothingElseAndIsRefused) {
  std::promise<void> disk;
  boost::asio::post(place().exec_files(),
                    [responds = disk.get_future().share()] { responds.wait(); });
  std::optional<Result<v1::CreateExecResponse>> created;
  directory().create_exec(kBox, parse_exec_request(request("hung-1")),
                          [&](auto reply) { created = std::move(reply); });
  create_ready("box-2");
  ASSERT_TRUE(ask_stop(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
  EXPECT_FALSE(created.has_value());
  disk.set_value();
  run_until([&] { return created.has_value(); });
  ASSERT_FALSE(created->has_value());
  EXPECT_EQ(created->error().reason(), reason::kSandboxNotReady);
  EXPECT_THAT(exec_events(), ElementsAre("SANDBOX_STOP_REQUESTED", "SANDBOX_STOPPED"));
  EXPECT_THAT(log_files(), IsEmpty());
}

TEST_F(StopTest, AContainerThatIsGoneOrHasEndedIsStopped) {
  create_ready("box-2");
  docker().hold("POST /containers/*/stop");
  ASSERT_TRUE(ask_stop(kBox).has_value());
  ASSERT_TRUE(ask_stop("box-2").has_value());
  run_until([&] { return docker().held("POST /containers/*/stop") == 2; });
  end_container(0, false, "box-2");
  engine().containers.erase(primary(kBox).id);
  guests_.end_all();
  docker().release("POST /containers/*/stop");
  wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
  wait_for_state("box-2", v1::SANDBOX_STATE_STOPPED);
}

TEST_F(StopTest, AStopThatTheEngineRefusesForAMomentIsRepeated) {
  docker().reply("POST /containers/*/stop", 500, R"({"message":"device is busy"})", 1);
  stop_sandbox(kBox);
  EXPECT_EQ(docker().calls("POST /containers/*/stop"), 2);
  EXPECT_THAT(exec_events(), ElementsAre("SANDBOX_STOP_REQUESTED", "SANDBOX_STOPPED"));
}

TEST_F(StopTest, AStopThatTheEngineKeepsRefusingIsFailed) {
  docker().reply("POST /containers/*/stop", 500, R"({"message":"device is busy"})");
  ASSERT_TRUE(ask_stop(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(docker().calls("POST /containers/*/stop"), kStopRefusalsForgiven + 1);
  EXPECT_EQ(handle(kBox).error_code(), "SANDBOX_STOP_FAILED");
  EXPECT_THAT(handle(kBox).error_message(), HasSubstr("device is busy"));
}

TEST_F(StopTest, AnEngineThatIsAwayIsWaitedFor) {
  docker().drop("POST /containers/*/stop");
  ASSERT_TRUE(ask_stop(kBox).has_value());
  run_until([&] { return docker().calls("POST /containers/*/stop") >= 2; });
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  docker().clear_faults();
  wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
  EXPECT_THAT(exec_events(), ElementsAre("SANDBOX_STOP_REQUESTED", "SANDBOX_STOPPED"));
}

TEST_F(StopTest, WithoutAnEngineNothingIsBegun) {
  create_ready("box-2");
  stop_sandbox("box-2");
  docker().stop_listening();
  wait_for_loss_of_engine();
  const auto refused = ask_stop(kBox);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason(), reason::kEngineUnavailable);
  EXPECT_EQ(ask_resume("box-2").error().reason(), reason::kEngineUnavailable);
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  EXPECT_EQ(state("box-2"), v1::SANDBOX_STATE_STOPPED);
}

TEST_F(StopTest, AnotherEngineBehindTheSocketIsNoEngineForIt) {
  docker().stop_listening();
  wait_for_loss_of_engine();
  engine().id = "FAKE:ENGINE:0002";
  docker().listen();
  wait_for_engine();
  const auto refused = ask_stop(kBox);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason(), reason::kEngineUnavailable);
  EXPECT_THAT(refused.error().message(),
              AllOf(HasSubstr("FAKE:ENGINE:0001"), HasSubstr("FAKE:ENGINE:0002")));
}

// L11
TEST_F(StopTest, AStopThatWasInterruptedAnywhereGoesOn) {
  for (const std::string& point : failpoints_of_a_lifecycle({"stop."})) {
    SCOPED_TRACE(point);
    std::string id = "at-" + point;
    std::ranges::replace(id, '.', '-');
    create_ready(id);
    begin_exec("exec-" + id, {}, id);
    const std::string container_id = primary(id).id;
    stop_held_at(point, id);
    stop();
    disarm();
    start();
    wait_for_state(id, v1::SANDBOX_STATE_STOPPED);
    EXPECT_THAT(exec_events(id), ElementsAre("EXEC_STARTED exec-" + id, "SANDBOX_STOP_REQUESTED",
                                             "EXEC_CANCELLED exec-" + id, "SANDBOX_STOPPED"));
    EXPECT_EQ(primary(id).id, container_id);
    EXPECT_FALSE(primary(id).is_running());
    ASSERT_TRUE(remove(id).has_value());
    wait_for_state(id, v1::SANDBOX_STATE_DELETED);
  }
}

// L2: delete wins, and nothing comes after it.
TEST_F(StopTest, ADeleteWhileTheStopIsHeldAnywhereWins) {
  for (const std::string& point : failpoints_of_a_lifecycle({"stop."})) {
    SCOPED_TRACE(point);
    std::string id = "at-" + point;
    std::ranges::replace(id, '.', '-');
    create_ready(id);
    stop_held_at(point, id);
    ASSERT_TRUE(remove(id).has_value());
    wait_for_state(id, v1::SANDBOX_STATE_DELETED);
    disarm();
    run_until_idle();
    settle();
    EXPECT_THAT(exec_events(id), ElementsAre("SANDBOX_STOP_REQUESTED", "SANDBOX_DELETE_REQUESTED",
                                             "SANDBOX_DELETED"));
  }
}

TEST_F(StopTest, AClientThatGoesAwayEndsNothing) {
  begin_exec("one-1");
  directory().stop(kBox, [](const Result<>&) {});
  wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
}

}  // namespace
}  // namespace agbox
