// SPDX-License-Identifier: Apache-2.0
// A running sandbox whose isolation fails a later verification: paused, verified again, unpaused,
// and what comes in between.
#include <algorithm>

#include "base/failpoint.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kProblem = "no rule is for it";
const std::string kPause = "POST /containers/*/pause";
const std::string kUnpause = "POST /containers/*/unpause";

class IsolationPauseTest : public ExecTest {
 protected:
  bool is_paused() { return primary(kBox).is_paused; }
  void wait_paused() {
    run_until([&] { return is_paused() && handle(kBox).paused(); });
  }
  void wait_verified() {
    run_until([&] { return handle(kBox).isolation_problem().empty(); });
  }
  void break_isolation() {
    isolation_.verification_problem = kProblem;
    isolation_.repair();
  }
  void pause() {
    break_isolation();
    wait_paused();
  }
  void restore_isolation() {
    isolation_.verification_problem.clear();
    isolation_.repair();
  }
  // The next verification that the sandbox has asked for.
  void verification_comes() {
    run_until([&] { return verifications().next().has_value(); });
    clock_.advance(*verifications().next() - clock_.boot_now());
    verifications().call_due();
  }
  // As a paused guest behaves towards the next daemon.
  void freeze_guest() {
    guests_.freeze(container());
    guests_.cut(container());
  }
  void by_hand(const std::string& action) {
    engine().answer({.method = "POST",
                     .path = "/containers/" + primary(kBox).id + "/" + action,
                     .query = {},
                     .body = {},
                     .registry_auth = {}});
  }
};

TEST_F(IsolationPauseTest, ItIsPausedUntilItHoldsAgainAndItsExecsGoOn) {
  begin_exec("before");
  const auto newest = handle(kBox).last_event_sequence();
  pause();
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  EXPECT_EQ(handle(kBox).isolation_problem(), kProblem);
  EXPECT_EQ(isolation_health().shortcoming, "sandbox box-1 is paused: " + kProblem);
  EXPECT_EQ(exec("before").state(), v1::EXEC_STATE_RUNNING);
  const auto refused = create_exec("meanwhile");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), reason::kSandboxNotReady);
  EXPECT_THAT(refused.error().message(), HasSubstr(kProblem));
  restore_isolation();
  wait_verified();
  EXPECT_FALSE(is_paused());
  EXPECT_FALSE(handle(kBox).paused());
  EXPECT_EQ(isolation_health().shortcoming, "");
  EXPECT_FALSE(verifications().next().has_value());
  ASSERT_TRUE(create_exec("after").has_value());
  end_exec("before", 3);
  wait_for_end("before");
  EXPECT_EQ(exec("before").exit_code(), 3);
  EXPECT_EQ(events(kBox, newest).front().event.event_type(), v1::EXEC_STARTED)
      << "no event of its own";
}

TEST_F(IsolationPauseTest, AGuestThatStaysAwayDoesNotAvoidTheVerification) {
  freeze_guest();
  run_until([&] { return !guests_.is_connected(container()); });
  pause();
  EXPECT_EQ(handle(kBox).isolation_problem(), kProblem);
}

TEST_F(IsolationPauseTest, AGuestThatLeavesIsVerifiedFromOutside) {
  isolation_.verification_problem = kProblem;  // without a repair
  freeze_guest();
  wait_paused();
  EXPECT_EQ(handle(kBox).isolation_problem(), kProblem);
}

TEST_F(IsolationPauseTest, AGuestThatStaysAwayForThirtySecondsIsReportedUntilItIsBack) {
  const auto newest = handle(kBox).last_event_sequence();
  freeze_guest();
  run_until([&] { return verifications().next().has_value(); });
  EXPECT_EQ(*verifications().next() - clock_.boot_now(), 30s);
  // From outside, at once.
  run_until([&] { return docker().calls("GET /containers/*/json") > 0; });
  run_until_idle();
  EXPECT_EQ(handle(kBox).isolation_unverified(), "");
  EXPECT_EQ(isolation_health().shortcoming, "") << "it may be about to come back";
  verification_comes();
  run_until([&] { return !handle(kBox).isolation_unverified().empty(); });
  EXPECT_THAT(handle(kBox).isolation_unverified(), HasSubstr("has not answered for 30 s"));
  EXPECT_EQ(isolation_health().shortcoming,
            "sandbox box-1: " + handle(kBox).isolation_unverified());
  EXPECT_EQ(handle(kBox).isolation_problem(), "") << "from outside it holds";
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  EXPECT_FALSE(is_paused());
  std::string reported;
  for (const v1::Finding& finding : diagnose()->findings()) {
    if (finding.check() == "isolation") reported += finding.sentence() + finding.remedy();
  }
  EXPECT_THAT(reported, HasSubstr("sandbox box-1: its guest has not answered for 30 s"));
  EXPECT_THAT(reported, HasSubstr("agbox sandbox resume box-1"));
  guests_.thaw(container());
  run_until([&] { return handle(kBox).isolation_unverified().empty(); });
  EXPECT_EQ(isolation_health().shortcoming, "");
  EXPECT_FALSE(verifications().next().has_value());
  EXPECT_THAT(events(kBox, newest), IsEmpty()) << "no event of its own";
}

TEST_F(IsolationPauseTest, AGuestThatKeepsAwayFromTheNextDaemonIsReportedToo) {
  freeze_guest();
  crash();
  docker().stop_listening();  // nothing but time brings it up
  start();
  verification_comes();
  run_until([&] { return !handle(kBox).isolation_unverified().empty(); });
  guests_.thaw(container());
  run_until([&] { return handle(kBox).isolation_unverified().empty(); });
  docker().listen();
}

TEST_F(IsolationPauseTest, AStoppedSandboxHasNoGuestToWaitFor) {
  freeze_guest();
  verification_comes();
  run_until([&] { return !handle(kBox).isolation_unverified().empty(); });
  stop_sandbox(kBox);
  EXPECT_EQ(handle(kBox).isolation_unverified(), "");
  EXPECT_EQ(isolation_health().shortcoming, "");
  EXPECT_FALSE(verifications().next().has_value());
}

TEST_F(IsolationPauseTest, WithoutARepairATimerHasItVerifiedAgain) {
  pause();
  isolation_.verifications.clear();
  verification_comes();
  run_until([&] { return isolation_.verifications.size() == 1; });
  run_until([&] { return verifications().next().has_value(); });
  EXPECT_EQ(*verifications().next() - clock_.boot_now(), 1000ms) << "after 500 ms";
  EXPECT_TRUE(is_paused());
  isolation_.verification_problem.clear();
  verification_comes();
  wait_verified();
  EXPECT_FALSE(is_paused());
}

TEST_F(IsolationPauseTest, RulesThatCannotBeRestoredPauseIt) {
  isolation_.lose_rules(kProblem);  // without a repair
  wait_paused();
  EXPECT_EQ(handle(kBox).isolation_problem(), kProblem);
}

TEST_F(IsolationPauseTest, WhileTheNextDaemonCannotLoadTheRulesItIsPaused) {
  stop();
  isolation_.start_problem = "the kernel knows no nftables";
  start();
  wait_paused();
  EXPECT_THAT(handle(kBox).isolation_problem(), HasSubstr(isolation_.start_problem));
  isolation_.start_problem.clear();
  wait_verified();
  EXPECT_FALSE(is_paused());
}

TEST_F(IsolationPauseTest, AGuestThatDoesNotAnswerAfterTheUnpauseHasItPausedAgain) {
  freeze_guest();
  run_until([&] { return !guests_.is_connected(container()); });
  pause();
  restore_isolation();
  run_until([&] { return docker().calls(kUnpause) == 1 && !is_paused(); });
  EXPECT_EQ(docker().calls(kPause), 1) << "it may be about to connect";
  verification_comes();
  run_until([&] { return docker().calls(kPause) == 2; });
  wait_paused();
  EXPECT_THAT(handle(kBox).isolation_problem(), HasSubstr("guest does not answer"));
}

TEST_F(IsolationPauseTest, APauseThatHasOnlyBegunIsReportedAsSuch) {
  docker().hold(kPause);
  break_isolation();
  run_until([&] { return docker().held(kPause) == 1; });
  EXPECT_EQ(isolation_health().shortcoming, "sandbox box-1 is being paused: " + kProblem);
  docker().release(kPause);
  wait_paused();
  EXPECT_EQ(isolation_health().shortcoming, "sandbox box-1 is paused: " + kProblem);
}

TEST_F(IsolationPauseTest, APausedGuestIsNotAskedAndAnUnpausedOneIs) {
  pause();
  const std::size_t asked = guests_.tried().size();
  verification_comes();
  run_until([&] { return verifications().next().has_value(); });
  EXPECT_EQ(guests_.tried().size(), asked);
  restore_isolation();
  wait_verified();
  EXPECT_EQ(guests_.tried().size(), asked + 1);
}

TEST_F(IsolationPauseTest, WhatOnlyTheGuestSeesPausesItAgainAfterAWait) {
  isolation_.inside_problem = "it came through";
  isolation_.repair();
  wait_paused();
  verification_comes();  // all holds from outside
  run_until([&] { return docker().calls(kPause) == 2; });
  wait_paused();
  EXPECT_EQ(docker().calls(kUnpause), 1);
  EXPECT_EQ(handle(kBox).isolation_problem(), "it came through");
  EXPECT_EQ(*verifications().next() - clock_.boot_now(), 1000ms);
  isolation_.verifications.clear();
  isolation_.repair();
  run_until([&] { return isolation_.verifications.size() == 1; });
  run_until_idle();
  EXPECT_TRUE(is_paused()) << "repairs do not make it flap";
  isolation_.inside_problem.clear();
  verification_comes();
  wait_verified();
  EXPECT_FALSE(is_paused());
}

TEST_F(IsolationPauseTest, WhereItIsOnlyReportedItRunsOnAndTakesExecs) {
  pauses_unisolated_ = false;
  restart();
  wait_swept();
  break_isolation();
  run_until([&] { return handle(kBox).isolation_problem() == kProblem; });
  EXPECT_EQ(isolation_health().shortcoming, "sandbox box-1: " + kProblem);
  begin_exec("meanwhile");
  EXPECT_FALSE(handle(kBox).paused());
  EXPECT_EQ(docker().calls(kPause), 0);
  isolation_.verification_problem.clear();
  verification_comes();
  wait_verified();
}

TEST_F(IsolationPauseTest, TheNextDaemonKnowsThatItIsPausedAndUnpausesIt) {
  pause();
  freeze_guest();
  crash();
  start();
  EXPECT_TRUE(handle(kBox).paused());
  EXPECT_EQ(handle(kBox).isolation_problem(), kProblem);
  EXPECT_EQ(isolation_health().shortcoming, "sandbox box-1 is paused: " + kProblem);
  wait_swept();
  run_until_idle();
  EXPECT_TRUE(is_paused());
  EXPECT_FALSE(create_exec("meanwhile").has_value());
  isolation_.verification_problem.clear();
  verification_comes();
  run_until([&] { return !is_paused(); });
  EXPECT_FALSE(handle(kBox).isolation_problem().empty()) << "its guest was not asked yet";
  guests_.thaw(container());
  wait_verified();
  EXPECT_FALSE(handle(kBox).paused());
}

TEST_F(IsolationPauseTest, TheNextDaemonUnpausesItIfItOnlyReports) {
  pause();
  stop();
  pauses_unisolated_ = false;
  start();
  run_until([&] { return !is_paused(); });
  run_until([&] { return !handle(kBox).paused(); });
  EXPECT_EQ(handle(kBox).isolation_problem(), kProblem);
}

TEST_F(IsolationPauseTest, ACrashAnywhereLeavesNothingPausedForever) {
  for (const std::string point : {"pause.container.before", "pause.container.after",
                                  "unpause.container.before", "unpause.container.after"}) {
    SCOPED_TRACE(point);
    const bool unpauses = point.starts_with("unpause");
    if (unpauses) pause();
    ASSERT_TRUE(failpoint::arm(point + "=hold"));
    unpauses ? restore_isolation() : break_isolation();
    wait_held_at(point);
    crash();
    disarm();
    start();
    wait_swept();
    if (!unpauses) {
      wait_paused();
      restore_isolation();
    }
    wait_verified();
    EXPECT_FALSE(is_paused());
    begin_exec("after-" + point.substr(0, point.find('.')) +
               (point.ends_with("after") ? "-a" : "-b"));
  }
}

TEST_F(IsolationPauseTest, WhatAnotherProcessHasPausedIsLeftToIt) {
  by_hand("pause");
  docker().forget_calls();
  break_isolation();
  // It is about to be paused, and inspected for that.
  run_until([&] { return docker().calls("GET /containers/*/json") == 1; });
  run_until_idle();
  settle();
  EXPECT_FALSE(handle(kBox).isolation_problem().empty());
  EXPECT_FALSE(handle(kBox).paused());
  restore_isolation();
  wait_verified();
  EXPECT_EQ(docker().calls(kPause), 0);
  EXPECT_EQ(docker().calls(kUnpause), 0);
  EXPECT_TRUE(is_paused());
}

TEST_F(IsolationPauseTest, WhatAnotherProcessUnpausesIsPausedAgainAtOnce) {
  pause();
  by_hand("unpause");
  EXPECT_FALSE(is_paused());
  run_until([&] { return is_paused(); });
  restore_isolation();
  wait_verified();
  EXPECT_FALSE(is_paused());
}

TEST_F(IsolationPauseTest, ADiagnosisReportsItAndPausesWhatItFinds) {
  isolation_.verification_problem = kProblem;
  const auto reported = [&] {
    std::string all;
    for (const v1::Finding& finding : diagnose()->findings()) all += finding.sentence() + "\n";
    return all;
  };
  EXPECT_THAT(reported(), HasSubstr("sandbox box-1: " + kProblem));
  wait_paused();
  EXPECT_THAT(reported(), HasSubstr("sandbox box-1 is paused: " + kProblem));
}

TEST_F(IsolationPauseTest, AnEngineThatCannotPauseIsAskedAgainAtTheNextVerification) {
  docker().reply(kPause, 500, R"({"message":"freezer not supported"})");
  break_isolation();
  run_until([&] { return docker().calls(kPause) == 1; });
  run_until_idle();
  settle();
  EXPECT_FALSE(handle(kBox).paused());
  EXPECT_EQ(handle(kBox).isolation_problem(), kProblem);
  EXPECT_EQ(isolation_health().shortcoming, "sandbox box-1: " + kProblem);
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  docker().clear_faults();
  verification_comes();
  wait_paused();
}

TEST_F(IsolationPauseTest, AnEngineThatIsAwayPausesItWhenItIsBack) {
  docker().stop_listening();
  wait_for_loss_of_engine();
  break_isolation();
  run_until([&] { return !handle(kBox).isolation_problem().empty(); });
  EXPECT_FALSE(handle(kBox).paused());
  docker().listen();
  wait_paused();
  docker().stop_listening();
  wait_for_loss_of_engine();
  restore_isolation();
  run_until_idle();
  EXPECT_TRUE(is_paused());
  docker().listen();
  wait_verified();
  EXPECT_FALSE(is_paused());
}

TEST_F(IsolationPauseTest, APauseWhoseAnswerWasLostIsOurs) {
  docker().lose_answer(kPause, 1);
  pause();
  restore_isolation();
  wait_verified();
  EXPECT_FALSE(is_paused());
}

TEST_F(IsolationPauseTest, AnUnpauseThatIsRefusedIsTriedAgain) {
  pause();
  docker().reply(kUnpause, 500, R"({"message":"thaw failed"})", 2);
  restore_isolation();
  wait_verified();
  EXPECT_FALSE(is_paused());
  EXPECT_EQ(docker().calls(kUnpause), 3);
}

TEST_F(IsolationPauseTest, OneThatHoldsBeforeItIsPausedIsNotPausedInTheEnd) {
  docker().hold(kPause);
  break_isolation();
  run_until([&] { return docker().held(kPause) == 1; });
  restore_isolation();
  run_until_idle();
  EXPECT_EQ(docker().calls(kUnpause), 0) << "not before the pause is over";
  docker().release(kPause);
  wait_verified();
  EXPECT_FALSE(is_paused());
}

TEST_F(IsolationPauseTest, AStopEndsItAtOnceAndAResumeVerifiesIt) {
  begin_exec("before");
  pause();
  const auto began = std::chrono::steady_clock::now();
  stop_sandbox(kBox);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 3s) << "its execs were waited for";
  EXPECT_EQ(docker().calls("POST /containers/*/kill"), 1);
  EXPECT_EQ(docker().calls("POST /containers/*/stop"), 0) << "the engine unpauses what it stops";
  EXPECT_EQ(exec("before").state(), v1::EXEC_STATE_CANCELLED);
  EXPECT_EQ(handle(kBox).isolation_problem(), "");
  EXPECT_FALSE(handle(kBox).paused());
  EXPECT_EQ(isolation_health().shortcoming, "");
  EXPECT_FALSE(verifications().next().has_value());
  isolation_.verification_problem.clear();
  resume_sandbox(kBox);
  EXPECT_FALSE(is_paused());
  begin_exec("after");
}

TEST_F(IsolationPauseTest, ADeleteEndsIt) {
  pause();
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
  expect_nothing_left();
  EXPECT_EQ(handle(kBox).isolation_problem(), "");
}

TEST_F(IsolationPauseTest, AContainerThatEndsWhileItIsPausedIsStartedAgainAndVerified) {
  pause();
  end_container(137);
  run_until([&] { return restarts().next().has_value(); });
  settle();
  EXPECT_EQ(handle(kBox).isolation_problem(), "");
  isolation_.verification_problem.clear();
  clock_.advance(*restarts().next() - clock_.boot_now());
  restarts().call_due();
  run_until([&] { return guests_.is_connected(container()); });
  begin_exec("after");
  EXPECT_FALSE(is_paused());
}

TEST_F(IsolationPauseTest, AContainerThatIsGoneFailsInsteadOfBeingPaused) {
  docker().hold(kPause);
  break_isolation();
  run_until([&] { return docker().held(kPause) == 1; });
  engine().answer({.method = "DELETE",
                   .path = "/containers/" + primary(kBox).id,
                   .query = {{"force", "1"}},
                   .body = {},
                   .registry_auth = {}});
  docker().release(kPause);
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle(kBox).error_code(), "CONTAINER_NOT_RUNNING");
  EXPECT_EQ(handle(kBox).isolation_problem(), "");
}

TEST_F(IsolationPauseTest, AnotherSandboxIsNotConcerned) {
  create_ready("box-2");
  isolation_.on_verification = [&] {
    const bool is_first =
        isolation_.verifications.back() == bridge_name(store().instance_id(), kBox);
    isolation_.verification_problem = is_first ? kProblem : "";
  };
  isolation_.verifications.clear();
  isolation_.repair();
  wait_paused();
  const std::string other = bridge_name(store().instance_id(), "box-2");
  run_until([&] { return std::ranges::count(isolation_.verifications, other) > 0; });
  run_until_idle();
  EXPECT_FALSE(primary("box-2").is_paused);
  EXPECT_EQ(handle("box-2").isolation_problem(), "");
}

}  // namespace
}  // namespace agbox
