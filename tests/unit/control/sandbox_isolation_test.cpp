// SPDX-License-Identifier: Apache-2.0
// When sandboxes wait for the host's isolation, when they prove it, and what becomes of it in the
// end.
#include "control/sandbox/sandbox_isolation.h"

#include "base/failpoint.h"
#include "model/object_names.h"
#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kBox = "box-1";
const std::string kNoRules = "the kernel knows no nftables";
const std::string kCannotIsolate =
    "sandboxes cannot be isolated, so none is created or started: " + kNoRules +
    "; agboxd tries again by itself";

class SandboxIsolationTest : public ControlTest {
 protected:
  std::string bridge(const std::string& id) { return bridge_name(store().instance_id(), id); }

  // Until an operation has come by the failpoint; nothing happens to it there.
  void run_until_passed(const std::string& failpoint, const std::function<void()>& act) {
    ASSERT_TRUE(failpoint::arm(failpoint + "=error@1000"));
    act();
    wait_held_at(failpoint);
    disarm();
  }
};

TEST_F(SandboxIsolationTest, ACreateWaitsForItAndMakesNothingBefore) {
  isolation_.holds_start = true;
  start();
  wait_swept();
  run_until_passed("create.isolation.before", [&] { ASSERT_TRUE(create(kBox).has_value()); });
  run_until_idle();
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_PENDING);
  EXPECT_THAT(network_names(), IsEmpty());
  isolation_.finish_start();
  wait_for_state(kBox, v1::SANDBOX_STATE_READY);
  EXPECT_THAT(isolation_.verifications, ElementsAre(bridge(kBox)));
}

TEST_F(SandboxIsolationTest, ADeleteEndsACreateThatWaitsForIt) {
  isolation_.holds_start = true;
  start();
  wait_swept();
  run_until_passed("create.isolation.before", [&] { ASSERT_TRUE(create(kBox).has_value()); });
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
  expect_nothing_left();
  isolation_.finish_start();
}

TEST_F(SandboxIsolationTest, AResumeWaitsForItAndProvesItBeforeAnythingRuns) {
  start();
  create_ready(kBox);
  stop_sandbox(kBox);
  isolation_.holds_start = true;
  restart();
  wait_swept();
  isolation_.verifications.clear();
  run_until_passed("resume.isolation.before", [&] { ASSERT_TRUE(ask_resume(kBox).has_value()); });
  run_until_idle();
  EXPECT_FALSE(primary(kBox).is_running());
  isolation_.finish_start();
  wait_for_state(kBox, v1::SANDBOX_STATE_READY);
  EXPECT_THAT(isolation_.verifications, ElementsAre(bridge(kBox)));
}

TEST_F(SandboxIsolationTest, WhereItCannotBePutInPlaceNothingBeginsAndReadsAreServed) {
  start();
  create_ready(kBox);
  stop_sandbox(kBox);
  stop();
  isolation_.start_problem = kNoRules;
  start();
  wait_for_engine();
  run_until([&] { return isolation_health().shortcoming == kCannotIsolate; });
  EXPECT_EQ(create("box-2").error().message(), kCannotIsolate);
  EXPECT_EQ(ask_resume(kBox).error().message(), kCannotIsolate);
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_STOPPED);
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
}

TEST_F(SandboxIsolationTest, ACreateThatWaitedInVainFailsWithTheReason) {
  isolation_.holds_start = true;
  isolation_.start_problem = kNoRules;
  start();
  run_until_passed("create.isolation.before", [&] { ASSERT_TRUE(create(kBox).has_value()); });
  isolation_.finish_start();
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle(kBox).error_message(), kCannotIsolate);
  EXPECT_THAT(network_names(), IsEmpty());
}

TEST_F(SandboxIsolationTest, OnceItIsInPlaceAfterAllTheNextCreateIsReady) {
  isolation_.start_problem = kNoRules;
  start();
  wait_for_engine();
  run_until([&] { return isolation_.starts == 2; });
  EXPECT_EQ(create(kBox).error().message(), kCannotIsolate);
  isolation_.start_problem.clear();
  run_until([&] { return isolation_health().shortcoming.empty(); });
  create_ready(kBox);
  EXPECT_THAT(isolation_.verifications, ElementsAre(bridge(kBox)));
}

TEST_F(SandboxIsolationTest, OnceItIsInPlaceAfterAllLiveSandboxesProveIt) {
  start();
  create_ready(kBox);
  stop();
  isolation_.verifications.clear();
  isolation_.start_problem = kNoRules;
  start();
  run_until([&] { return isolation_.starts == 3; });
  wait_swept();
  run_until_idle();
  EXPECT_THAT(isolation_.verifications, IsEmpty());
  isolation_.start_problem.clear();
  run_until([&] { return !isolation_.verifications.empty(); });
  EXPECT_THAT(isolation_.verifications, ElementsAre(bridge(kBox)));
}

TEST_F(SandboxIsolationTest, AFailedProofFailsTheCreateAndLeavesNothing) {
  isolation_.verification_problem = "table inet x is missing";
  start();
  ASSERT_TRUE(create(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_THAT(handle(kBox).error_message(), HasSubstr("table inet x is missing"));
  expect_nothing_left();
}

TEST_F(SandboxIsolationTest, TheSandboxItselfTriesBeforeAnythingRuns) {
  start();
  create_ready(kBox);
  ASSERT_EQ(guests_.tried().size(), 1U);
  EXPECT_EQ(guests_.tried()[0].address(), FakeIsolation::kForbidden.address.value);
  EXPECT_EQ(guests_.tried()[0].port(), FakeIsolation::kForbidden.port);
  stop_sandbox(kBox);
  resume_sandbox(kBox);
  EXPECT_EQ(guests_.tried().size(), 2U);
}

TEST_F(SandboxIsolationTest, WhatTheSandboxReachesFailsTheCreateBeforeAnythingRuns) {
  guests_.script.reaches = guest::v1::ConnectionTried::OUTCOME_CONNECTED;
  start();
  for (const std::string& point : {"silence.inspect.before", "silence.inspect.after"}) {
    SCOPED_TRACE(point);
    const std::string id = point.ends_with("before") ? "box-1" : "box-2";
    ASSERT_NO_FATAL_FAILURE(create_held_at(id, point));
    EXPECT_EQ(guests_.order(primary_container_name(id)), nullptr) << "it was told to go";
    disarm();
    restart();
    wait_for_state(id, v1::SANDBOX_STATE_FAILED);
    EXPECT_THAT(handle(id).error_message(), HasSubstr("it is not isolated"));
    expect_nothing_left();
  }
}

TEST_F(SandboxIsolationTest, AFailedProofFailsTheResumeAndStopsTheContainer) {
  start();
  create_ready(kBox);
  stop_sandbox(kBox);
  isolation_.verification_problem = "table inet x is missing";
  ASSERT_TRUE(ask_resume(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_THAT(handle(kBox).error_message(), HasSubstr("table inet x is missing"));
  EXPECT_FALSE(primary(kBox).is_running());
}

TEST_F(SandboxIsolationTest, TheNextDaemonLetsEveryLiveSandboxProveItAgain) {
  start();
  create_ready("box-1");
  create_ready("box-2");
  stop_sandbox("box-2");
  stop();
  isolation_.verifications.clear();
  start();
  run_until([&] { return !isolation_.verifications.empty(); });
  wait_swept();
  run_until_idle();
  EXPECT_THAT(isolation_.verifications, ElementsAre(bridge("box-1"))) << "once: no engine was lost";
}

TEST_F(SandboxIsolationTest, TheNextDaemonDoesNotWaitForAnEngineWithIt) {
  start();
  create_ready(kBox);
  stop();
  isolation_.verifications.clear();
  docker().stop_listening();
  start();
  run_until([&] { return !isolation_.verifications.empty(); });
  EXPECT_FALSE(plane().engine().has_value());
  EXPECT_THAT(isolation_.verifications, Each(bridge(kBox)));
}

TEST_F(SandboxIsolationTest, AfterARepairEveryLiveSandboxProvesItAgain) {
  start();
  wait_swept();
  create_ready("box-1");
  create_ready("box-2");
  create_ready("box-3");
  stop_sandbox("box-2");
  isolation_.verifications.clear();
  isolation_.repair();
  run_until([&] { return isolation_.verifications.size() == 2; });
  run_until_idle();
  EXPECT_THAT(isolation_.verifications, ElementsAre(bridge("box-1"), bridge("box-3")));
  EXPECT_EQ(isolation_health().shortcoming, "");
  EXPECT_EQ(isolation_health().repairs, 1U);
}

TEST_F(SandboxIsolationTest, OneWhoseEntrypointRanDuringARepairProvesItOnceItIsReady) {
  start();
  wait_swept();
  guests_.script.answers_go = false;
  ASSERT_TRUE(create(kBox).has_value());
  const std::string container = primary_container_name(kBox);
  run_until([&] { return guests_.order(container) != nullptr; });
  isolation_.repair();
  run_until_idle();
  EXPECT_THAT(isolation_.verifications, ElementsAre(bridge(kBox)));
  guest::v1::ToDaemon passed;
  passed.mutable_entrypoint_passed();
  guests_.say(container, passed);
  wait_for_state(kBox, v1::SANDBOX_STATE_READY);
  run_until([&] { return isolation_.verifications.size() == 2; });
  EXPECT_THAT(isolation_.verifications, ElementsAre(bridge(kBox), bridge(kBox)));
}

TEST_F(SandboxIsolationTest, ALiveSandboxThatCannotProveItIsNamedUntilItCan) {
  start();
  create_ready(kBox);
  isolation_.verification_problem = "no rule is for it";
  isolation_.repair();
  run_until([&] {
    return isolation_health().shortcoming == "sandbox box-1 is paused: no rule is for it";
  });
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  isolation_.verification_problem.clear();
  isolation_.repair();
  run_until([&] { return isolation_health().shortcoming.empty(); });
}

TEST_F(SandboxIsolationTest,
       ALiveSandboxWhoseGuestIsAwayIsVerifiedFromOutsideAndAgainWhenItIsBack) {
  start();
  create_ready("box-1");
  create_ready("box-2");
  const std::string first = primary_container_name("box-1");
  isolation_.verifications.clear();
  guests_.freeze(first);
  guests_.cut(first);
  run_until(
      [&] { return isolation_.verifications.size() == 1; });  // its container runs without a guest
  run_until_idle();
  isolation_.verifications.clear();
  isolation_.repair();
  run_until([&] { return isolation_.verifications.size() == 2; });
  run_until_idle();
  EXPECT_THAT(isolation_.verifications, ElementsAre(bridge("box-1"), bridge("box-2")));
  const std::size_t tried = guests_.tried().size();
  guests_.thaw(first);
  run_until([&] { return isolation_.verifications.size() == 3; });
  run_until([&] { return guests_.tried().size() == tried + 1; });
  EXPECT_EQ(isolation_.verifications.back(), bridge("box-1"));
  EXPECT_EQ(isolation_health().shortcoming, "");
}

TEST_F(SandboxIsolationTest, TheResolversOfEverySandboxStayWithinReachUntilItIsDeleted) {
  start();
  run_until([&] { return isolation_.is_started; });
  EXPECT_THAT(isolation_.resolvers, ElementsAre("192.0.2.53"));
  create_ready("box-1");
  create_ready("box-2");
  stop_sandbox("box-2");
  stop();
  resolver_ = "192.0.2.54";
  start();
  wait_for_engine();
  run_until([&] { return isolation_.is_started; });
  EXPECT_THAT(isolation_.resolvers, ElementsAre("192.0.2.53", "192.0.2.54"));
  ASSERT_TRUE(remove("box-1").has_value());
  wait_for_state("box-1", v1::SANDBOX_STATE_DELETED);
  run_until_idle();
  EXPECT_THAT(isolation_.resolvers, ElementsAre("192.0.2.53", "192.0.2.54"));
  ASSERT_TRUE(remove("box-2").has_value());
  run_until([&] { return isolation_.resolvers.size() == 1; });
  EXPECT_THAT(isolation_.resolvers, ElementsAre("192.0.2.54"));
}

TEST_F(SandboxIsolationTest, ItIsTakenAwayOnlyWhereNoSandboxIsLeft) {
  start();
  create_ready(kBox);
  stop();
  EXPECT_EQ(isolation_.removed_rules, false);
  start();
  wait_for_engine();
  stop_sandbox(kBox);
  stop();
  EXPECT_EQ(isolation_.removed_rules, false);
  start();
  wait_for_engine();
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
  stop();
  EXPECT_EQ(isolation_.removed_rules, true);
}

}  // namespace
}  // namespace agbox
