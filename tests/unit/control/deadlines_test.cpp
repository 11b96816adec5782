// SPDX-License-Identifier: Apache-2.0
// What becomes of a sandbox that is left alone: idle, stopped or failed, deleted. Time is moved by
// hand.
#include "control/upkeep/deadlines.h"

#include <filesystem>
#include <fstream>

#include "base/failpoint.h"
#include "model/reasons.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Deadlines, EachComesOnceInItsOrderAndTheLatestOneCounts) {
  ControlLoop loop;
  ManualClock clock;
  std::vector<std::string> due;
  Deadlines deadlines(loop, clock, [&](const std::string& id) { due.push_back(id); });
  deadlines.set("late", 3h);
  deadlines.set("early", 1h);
  deadlines.set("put-off", 1h);
  deadlines.set("put-off", 2h);
  deadlines.set("given-up", 1h);
  deadlines.clear("given-up");
  deadlines.clear("unknown");
  clock.advance(1h);
  deadlines.call_due();
  EXPECT_THAT(due, ElementsAre("early"));
  clock.advance(3h);
  deadlines.call_due();
  deadlines.call_due();
  EXPECT_THAT(due, ElementsAre("early", "put-off", "late"));
}

TEST(Deadlines, TheTimerCallsWithoutAnybodysHelp) {
  ControlLoop loop;
  SystemClock clock;
  int due = 0;
  Deadlines deadlines(loop, clock, [&](const std::string&) { ++due; });
  deadlines.set("put-off", clock.boot_now());
  deadlines.set("put-off", clock.boot_now() + 30ms);  // the timer comes too early for it
  deadlines.set("now", clock.boot_now());
  while (due < 2) loop.io().run_one_for(10s);
  EXPECT_EQ(due, 2);
}

class LeftAloneTest : public ExecTest {
 protected:
  LeftAloneTest() {
    stop();
    ttls_ = {.idle = 30min, .cleanup = 360h, .history = 168h};
    start();
    wait_for_engine();
  }
  void pass(std::chrono::nanoseconds time) {
    clock_.advance(time);
    directory().deadlines().call_due();
    run_until_idle();
    settle();
  }
  static SandboxSpec idle_after(std::int64_t seconds) {
    v1::CreateSpec wanted;
    wanted.set_image("busybox");
    wanted.mutable_idle_ttl()->set_seconds(seconds);
    return parse_create_spec(wanted).value();
  }
  std::string last_reason(const std::string& id = kBox) {
    return events(id).back().event.sandbox_phase().reason();
  }
  void restart_after(std::chrono::nanoseconds down, std::chrono::nanoseconds jump = 0s) {
    stop();
    clock_.advance(down);
    clock_.jump_wall(jump);
    start();
    wait_for_engine();
  }
};

TEST_F(LeftAloneTest, AnIdleSandboxIsStoppedWithItsReason) {
  pass(29min);
  EXPECT_EQ(handle(kBox).last_event_sequence(), 3U);
  pass(1min);
  wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
  const auto told = events(kBox, 3);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].event.event_type(), v1::SANDBOX_STOP_REQUESTED);
  EXPECT_EQ(told[0].event.sandbox_phase().reason(), "idle_ttl");
  EXPECT_EQ(told[1].event.sandbox_phase().reason(), "idle_ttl");
}

TEST_F(LeftAloneTest, ARunningExecIsNeverIdleAndItsEndBeginsTheTimeAnew) {
  begin_exec("long-1");
  pass(100h);
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  end_exec("long-1", 1);  // L12: whatever its outcome
  wait_for_end("long-1");
  pass(29min);
  EXPECT_EQ(handle(kBox).last_event_sequence(), 5U);
  pass(1min);
  wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
}

// L12
TEST_F(LeftAloneTest, AResumeBeginsTheTimeAnew) {
  pass(30min);
  wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
  pass(5h);
  resume_sandbox(kBox);
  pass(29min);
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  pass(1min);
  wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
}

TEST_F(LeftAloneTest, ARefusedCreateDoesNotTouchTheSandboxThatHasItsId) {
  const auto due = directory().deadlines().next();
  ASSERT_TRUE(due);
  EXPECT_FALSE(create(kBox));
  EXPECT_EQ(directory().deadlines().next(), due);
  pass(30min);
  wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
}

TEST_F(LeftAloneTest, ATimeOfItsOwnGoesBeforeTheGlobalOne) {
  create_ready("short-1", idle_after(60));
  create_ready("never-1", idle_after(0));
  pass(1min);
  wait_for_state("short-1", v1::SANDBOX_STATE_STOPPED);
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  pass(1000h);
  EXPECT_EQ(state("never-1"), v1::SANDBOX_STATE_READY);
}

TEST_F(LeftAloneTest, TheTimeBeginsWhenItIsReadyNotWhenItWasAskedFor) {
  ASSERT_TRUE(failpoint::arm("start.container.before=hold"));
  ASSERT_TRUE(create("slow-1").has_value());
  wait_held_at("start.container.before");
  clock_.advance(2h);
  stop();
  disarm();
  start();
  wait_for_state("slow-1", v1::SANDBOX_STATE_READY);
  pass(29min);
  EXPECT_EQ(state("slow-1"), v1::SANDBOX_STATE_READY);
  pass(1min);
  wait_for_state("slow-1", v1::SANDBOX_STATE_STOPPED);
}

TEST_F(LeftAloneTest, AnExecInTheMomentOfTheIdleStopKeepsItOrIsRefused) {
  clock_.advance(30min);
  // First the exec: it runs, and nothing is idle.
  std::optional<Result<v1::CreateExecResponse>> created;
  begin_accepting(
      "first-1", [&](auto reply) { created = std::move(reply); },
      [&] { directory().deadlines().call_due(); });
  run_until([&] { return created.has_value(); });
  ASSERT_TRUE(created->has_value());
  wait_given("first-1");
  end_exec("first-1", 0);
  wait_for_end("first-1");
  EXPECT_EQ(handle(kBox).last_event_sequence(), 5U);
  // First the stop: the exec is refused.
  clock_.advance(30min);
  directory().deadlines().call_due();
  EXPECT_EQ(create_exec("second-1").error().reason(), reason::kSandboxNotReady);
  wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
}

TEST_F(LeftAloneTest, TheTimeGoesOnWhileTheDaemonIsAway) {
  pass(20min);
  restart_after(9min);
  pass(0s);
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  pass(1min);
  wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
  EXPECT_EQ(last_reason(), "idle_ttl");
}

TEST_F(LeftAloneTest, AnExecIsToldThatItWasIdleAlsoAfterARestart) {
  pass(30min);
  wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
  const std::string words =
      "sandbox " + std::string(kBox) + " is not ready: it is stopped (idle_ttl); resume it";
  EXPECT_EQ(create_exec("late-1").error().message(), words);
  restart_after(1min);
  EXPECT_EQ(create_exec("late-1").error().message(), words);
}

TEST_F(LeftAloneTest, WhoSetsTheDateStopsDeletesAndPurgesNothingEarly) {
  create_ready("stopped-1");
  stop_sandbox("stopped-1");
  create_ready("deleted-1");
  ASSERT_TRUE(remove("deleted-1").has_value());
  wait_for_state("deleted-1", v1::SANDBOX_STATE_DELETED);
  const auto all_is_as_it_was = [&] {
    pass(0s);
    return state(kBox) == v1::SANDBOX_STATE_READY &&
           state("stopped-1") == v1::SANDBOX_STATE_STOPPED && directory().get("deleted-1");
  };
  clock_.jump_wall(24h * 365);
  EXPECT_TRUE(all_is_as_it_was());
  restart_after(1min);
  EXPECT_TRUE(all_is_as_it_was());
  restart_after(1min, 24h * 365);
  EXPECT_TRUE(all_is_as_it_was());
  restart_after(1min, -24h * 1000);
  EXPECT_TRUE(all_is_as_it_was());
  pass(27min);
  wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
}

TEST_F(LeftAloneTest, AfterARebootTheDateTells) {
  stop_sandbox(kBox);
  stop();
  clock_.reboot();
  clock_.advance(359h);
  start();
  wait_for_engine();
  pass(0s);
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_STOPPED);
  pass(1h);
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
}

TEST_F(LeftAloneTest, WhatIsStoppedForLongIsDeletedAndThenPurged) {
  stop_sandbox(kBox);
  pass(359h);
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_STOPPED);
  pass(1h);
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
  EXPECT_EQ(last_reason(), "cleanup_ttl");
  expect_nothing_left();
  restart_after(167h);
  pass(0s);
  EXPECT_TRUE(directory().get(kBox).has_value());
  pass(1h);
  run_until([&] { return !directory().get(kBox).has_value(); });
}

TEST_F(LeftAloneTest, AHistoryIsKeptUntilItsOutputCanBeRemoved) {
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
  const auto output = temp_directory_.path() / "execs" / kBox;
  std::filesystem::remove_all(output);
  std::ofstream(output) << "not a directory";
  pass(168h);
  EXPECT_TRUE(directory().get(kBox).has_value());
  std::filesystem::remove(output);
  pass(59min);
  EXPECT_TRUE(directory().get(kBox).has_value());
  pass(1min);
  run_until([&] { return !directory().get(kBox).has_value(); });
}

// L26
TEST_F(LeftAloneTest, WhatFailedLongAgoIsDeletedToo) {
  engine().answer({.method = "DELETE",
                   .path = "/containers/" + primary(kBox).id,
                   .query = {{"force", "1"}},
                   .body = {},
                   .registry_auth = {}});
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  restart_after(300h);
  pass(59h);
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_FAILED);
  pass(1h);
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
  EXPECT_EQ(last_reason(), "cleanup_ttl");
  expect_nothing_left();
}

TEST_F(LeftAloneTest, ZeroSwitchesEachOfThemOff) {
  stop();
  ttls_ = {};
  start();
  wait_for_engine();
  create_ready("stopped-1");
  stop_sandbox("stopped-1");
  create_ready("deleted-1");
  ASSERT_TRUE(remove("deleted-1").has_value());
  wait_for_state("deleted-1", v1::SANDBOX_STATE_DELETED);
  pass(24h * 365 * 50);
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  EXPECT_EQ(state("stopped-1"), v1::SANDBOX_STATE_STOPPED);
  EXPECT_TRUE(directory().get("deleted-1").has_value());
}

TEST_F(LeftAloneTest, AnIdleStopWaitsForTheEngineLikeAnyOther) {
  docker().drop("POST /containers/*/stop");
  pass(30min);
  run_until([&] { return docker().calls("POST /containers/*/stop") >= 2; });
  docker().clear_faults();
  wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
  EXPECT_EQ(last_reason(), "idle_ttl");
}

TEST_F(LeftAloneTest, AnIdleStopThatWasInterruptedKeepsItsReason) {
  ASSERT_TRUE(failpoint::arm("stop.container.before=hold"));
  clock_.advance(30min);
  directory().deadlines().call_due();
  wait_held_at("stop.container.before");
  stop();
  disarm();
  start();
  wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
  EXPECT_EQ(last_reason(), "idle_ttl");
}

}  // namespace
}  // namespace agbox
