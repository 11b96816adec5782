// SPDX-License-Identifier: Apache-2.0
// A resume at every moment: the same container comes back, nothing is made, and what is missing is
// said.
#include "base/failpoint.h"
#include "model/reasons.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ResumeTest : public ExecTest {
 protected:
  std::string id_for(const std::string& point) {
    std::string id = "at-" + point;
    std::ranges::replace(id, '.', '-');
    return id;
  }
  // A stopped sandbox whose resume comes by this failpoint.
  void prepare(const std::string& id, const std::string& point) {
    create_ready(id);
    stop_sandbox(id);
    if (point.starts_with("resume.stop.")) start_by_hand(id);
    if (point.starts_with("resume.undo.")) {
      docker().reply("POST /containers/*/start", 500, R"({"message":"no room"})", 1);
    }
  }
  void resume_held_at(const std::string& id, const std::string& point) {
    ASSERT_TRUE(failpoint::arm(point + "=hold"));
    ASSERT_TRUE(ask_resume(id).has_value());
    wait_held_at(point);
  }
};

TEST_F(ResumeTest, TheSameContainerComesBack) {
  const fake::Container before = primary(kBox);
  const std::string first_secret = guests_.order(container())->secret();
  stop_sandbox(kBox);
  const auto networks = network_names();
  ASSERT_TRUE(ask_resume(kBox).has_value());
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_PENDING);
  wait_for_state(kBox, v1::SANDBOX_STATE_READY);
  EXPECT_EQ(primary(kBox).id, before.id);
  EXPECT_TRUE(primary(kBox).is_running());
  EXPECT_EQ(network_names(), networks);
  // Each start has a secret of its own.
  EXPECT_NE(guests_.order(container())->secret(), first_secret);
  EXPECT_THAT(exec_events(), ElementsAre("SANDBOX_STOP_REQUESTED", "SANDBOX_STOPPED",
                                         "SANDBOX_ACCEPTED", "SANDBOX_READY"));
  begin_exec("after-1");
  end_exec("after-1", 0);
  wait_for_end("after-1");
  EXPECT_EQ(exec("after-1").state(), v1::EXEC_STATE_FINISHED);
}

TEST_F(ResumeTest, AResumeMakesNothing) {
  stop_sandbox(kBox);
  docker().forget_calls();
  resume_sandbox(kBox);
  EXPECT_THAT(docker().call_log(),
              ElementsAre(testing::StartsWith("GET /networks"), testing::EndsWith("/json"),
                          testing::EndsWith("/archive"), testing::EndsWith("/archive"),
                          testing::EndsWith("/archive"), testing::EndsWith("/start"),
                          testing::EndsWith("/json")));
}

TEST_F(ResumeTest, AGuestOfAResumedSandboxComesBackToTheNextDaemon) {
  stop_sandbox(kBox);
  resume_sandbox(kBox);
  begin_exec("long-1");
  restart();
  end_exec("long-1", 3);
  wait_for_end("long-1");
  EXPECT_EQ(exec("long-1").exit_code(), 3);
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
}

TEST_F(ResumeTest, OneThatComesDuringTheFirstLookKeepsItsSecret) {
  stop_sandbox(kBox);
  docker().hold("GET /containers/*/json", 1);
  restart();
  run_until([&] { return docker().held("GET /containers/*/json") == 1; });
  ASSERT_TRUE(ask_resume(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_READY);
}

TEST_F(ResumeTest, TheEntrypointIsThatOfTheImageItWasMadeFrom) {
  engine().add_image("busybox", {{"Entrypoint", boost::json::array{"/first"}}});
  create_ready("box-2");
  stop_sandbox("box-2");
  engine().add_image("busybox", {{"Entrypoint", boost::json::array{"/other"}}});
  restart();
  resume_sandbox("box-2");
  EXPECT_THAT(guests_.order(container("box-2"))->entrypoint(), ElementsAre("/first"));
}

TEST_F(ResumeTest, AMissingContainerFailsItAndNothingIsMade) {
  stop_sandbox(kBox);
  engine().answer({.method = "DELETE",
                   .path = "/containers/" + primary(kBox).id,
                   .query = {},
                   .body = {},
                   .registry_auth = {}});
  ASSERT_TRUE(ask_resume(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle(kBox).error_code(), "SANDBOX_RESUME_FAILED");
  EXPECT_THAT(handle(kBox).error_message(),
              AllOf(HasSubstr("container agbox-primary-box-1"), HasSubstr("is gone")));
  EXPECT_THAT(docker().container_names(), IsEmpty());
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
  expect_nothing_left();
}

TEST_F(ResumeTest, AGuestDirectoryThatCannotBeReachedIsWaitedFor) {
  stop_sandbox(kBox);
  const auto aside = temp_directory_.path() / "not-mounted";
  std::filesystem::rename(link_root(), aside);
  docker().forget_calls();
  ASSERT_TRUE(ask_resume(kBox).has_value());
  // Two tries, each of which asks for the network and the container first.
  run_until([&] { return docker().call_log().size() >= 4; });
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_PENDING);
  std::filesystem::rename(aside, link_root());
  wait_for_state(kBox, v1::SANDBOX_STATE_READY);
}

// An engine that restarts, without its containers living on, in the middle of a resume.
TEST_F(ResumeTest, AnEngineThatRestartsWhileTheGuestIsAwaitedFailsNothing) {
  stop_sandbox(kBox);
  for (const bool connects : {false, true}) {
    SCOPED_TRACE(connects ? "it waits for the entrypoint" : "it waits for the guest's hello");
    guests_.script.connects = connects;
    guests_.script.answers_go = false;
    ASSERT_TRUE(ask_resume(kBox).has_value());
    run_until([&] {
      return connects ? guests_.order(container()) != nullptr : primary(kBox).is_running();
    });
    docker().stop_listening();
    wait_for_loss_of_engine();
    end_container(137, false);
    guests_.script = {};
    docker().listen();
    wait_for_state(kBox, v1::SANDBOX_STATE_READY);
    stop_sandbox(kBox);
  }
}

TEST_F(ResumeTest, AContainerThatEndsAtEachStartFailsItWithItsExitCode) {
  stop_sandbox(kBox);
  guests_.script.connects = false;
  ASSERT_TRUE(ask_resume(kBox).has_value());
  while (state(kBox) == v1::SANDBOX_STATE_PENDING) {
    loop_.io().run_one_for(std::chrono::milliseconds(100));
    if (primary(kBox).is_running()) end_container(7, false);
  }
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle(kBox).error_code(), "SANDBOX_RESUME_FAILED");
  EXPECT_THAT(handle(kBox).error_message(), HasSubstr("it exited with code 7"));
}

TEST_F(ResumeTest, AMissingNetworkFailsItAndNothingIsMade) {
  stop_sandbox(kBox);
  engine().networks.clear();
  ASSERT_TRUE(ask_resume(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_THAT(handle(kBox).error_message(),
              AllOf(HasSubstr("network agbox-net-box-1 is gone"), HasSubstr("delete sandbox")));
  EXPECT_THAT(network_names(), IsEmpty());
  EXPECT_FALSE(primary(kBox).is_running());
}

TEST_F(ResumeTest, AContainerOfSomebodyElseIsNotStarted) {
  stop_sandbox(kBox);
  engine().find_container(container())->labels.clear();
  ASSERT_TRUE(ask_resume(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_THAT(handle(kBox).error_message(), HasSubstr("is not ours"));
  EXPECT_FALSE(primary(kBox).is_running());
}

TEST_F(ResumeTest, ASocketDirectoryThatWasRemovedFailsIt) {
  stop_sandbox(kBox);
  ASSERT_GT(std::filesystem::remove_all(link_root() / link_directories().at(0)), 0U);
  ASSERT_TRUE(ask_resume(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle(kBox).error_code(), "SANDBOX_RESUME_FAILED");
  EXPECT_FALSE(primary(kBox).is_running());
}

TEST_F(ResumeTest, AnEntrypointThatEndsFailsItAndNothingRunsOn) {
  stop_sandbox(kBox);
  guests_.script.entrypoint_failure = "not today";
  ASSERT_TRUE(ask_resume(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_THAT(handle(kBox).error_message(), HasSubstr("not today"));
  EXPECT_FALSE(primary(kBox).is_running());
  EXPECT_THAT(docker().container_names(), Not(IsEmpty()));
}

TEST_F(ResumeTest, WhatIsNotStoppedIsRefused) {
  const auto refused = ask_resume(kBox);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason(), reason::kSandboxInvalidState);
  EXPECT_EQ(refused.error().message(), "sandbox box-1 is not stopped");
  EXPECT_EQ(ask_resume("nobody").error().reason(), reason::kSandboxNotFound);
  stop_sandbox(kBox);
  resume_held_at(kBox, "resume.network.before");
  EXPECT_EQ(ask_resume(kBox).error().reason(), reason::kSandboxInvalidState);
  EXPECT_EQ(ask_stop(kBox).error().message(), "sandbox box-1 is not ready");
  EXPECT_EQ(create_exec("early-1").error().reason(), reason::kSandboxNotReady);
}

TEST_F(ResumeTest, AFailedSandboxWithItsContainerIsResumed) {
  docker().reply("POST /containers/*/stop", 500, R"({"message":"device is busy"})");
  ASSERT_TRUE(ask_stop(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  const std::string container_id = primary(kBox).id;
  docker().clear_faults();
  resume_sandbox(kBox);
  EXPECT_EQ(handle(kBox).error_code(), "");
  EXPECT_EQ(primary(kBox).id, container_id);
  EXPECT_THAT(exec_events(), ElementsAre("SANDBOX_STOP_REQUESTED", "SANDBOX_FAILED",
                                         "SANDBOX_ACCEPTED", "SANDBOX_READY"));
  begin_exec("next-1");
  end_exec("next-1", 0);
  wait_for_end("next-1");
}

TEST_F(ResumeTest, AFailedSandboxWithoutItsContainerIsNotResumed) {
  engine().containers.erase(primary(kBox).id);
  guests_.end_all();
  restart();
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle(kBox).error_code(), "CONTAINER_NOT_RUNNING");
  EXPECT_EQ(ask_resume(kBox).error().message(), "sandbox box-1 is not stopped");
}

TEST_F(ResumeTest, AFailedCreateHasNothingToResume) {
  docker().reply("POST /containers/create", 500, R"({"message":"no"})");
  ASSERT_TRUE(create("never-1").has_value());
  wait_for_state("never-1", v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(ask_resume("never-1").error().message(), "sandbox never-1 is not stopped");
}

TEST_F(ResumeTest, AnEngineThatIsAwayIsWaitedFor) {
  stop_sandbox(kBox);
  // The container may well have been started: nobody heard of it.
  docker().lose_answer("POST /containers/*/start", 1);
  ASSERT_TRUE(ask_resume(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_READY);
  EXPECT_THAT(exec_events(), ElementsAre("SANDBOX_STOP_REQUESTED", "SANDBOX_STOPPED",
                                         "SANDBOX_ACCEPTED", "SANDBOX_READY"));
  begin_exec("after-1");
}

TEST_F(ResumeTest, AResumeThatWasInterruptedAnywhereGoesOn) {
  for (const std::string& point : failpoints_of_a_lifecycle({"resume.", "start."})) {
    SCOPED_TRACE(point);
    const std::string id = id_for(point);
    prepare(id, point);
    const std::string container_id = primary(id).id;
    resume_held_at(id, point);
    stop();
    disarm();
    docker().clear_faults();
    start();
    // Also one that had failed already: nobody was told of it.
    wait_for_state(id, v1::SANDBOX_STATE_READY);
    EXPECT_EQ(primary(id).id, container_id);
    EXPECT_THAT(exec_events(id), ElementsAre("SANDBOX_STOP_REQUESTED", "SANDBOX_STOPPED",
                                             "SANDBOX_ACCEPTED", "SANDBOX_READY"));
    begin_exec("exec-" + id, {}, id);
    ASSERT_TRUE(remove(id).has_value());
    wait_for_state(id, v1::SANDBOX_STATE_DELETED);
  }
}

TEST_F(ResumeTest, ADeleteWhileTheResumeIsHeldAnywhereWins) {
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
  for (const std::string& point : failpoints_of_a_lifecycle({"resume.", "start."})) {
    SCOPED_TRACE(point);
    const std::string id = id_for(point);
    prepare(id, point);
    resume_held_at(id, point);
    ASSERT_TRUE(remove(id).has_value());
    wait_for_state(id, v1::SANDBOX_STATE_DELETED);
    disarm();
    docker().clear_faults();
    run_until_idle();
    settle();
    EXPECT_THAT(exec_events(id),
                ElementsAre("SANDBOX_STOP_REQUESTED", "SANDBOX_STOPPED", "SANDBOX_ACCEPTED",
                            "SANDBOX_DELETE_REQUESTED", "SANDBOX_DELETED"));
    expect_nothing_left();
  }
}

// L12's cousin: what was seen of the container before the stop says nothing about the next start.
TEST_F(ResumeTest, TheEndOfTheContainerInAStopIsNoLoss) {
  for (int i = 0; i < 3; ++i) {
    stop_sandbox(kBox);
    resume_sandbox(kBox);
    docker().drop_event_streams();
    wait_for_loss_of_engine();
    wait_for_engine();
    run_until_idle();
    settle();
    EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  }
}

}  // namespace
}  // namespace agbox
