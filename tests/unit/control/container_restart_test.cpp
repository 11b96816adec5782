// SPDX-License-Identifier: Apache-2.0
// A container that should run and does not: what becomes of it, and in which time.
#include <algorithm>
#include <utility>

#include "base/failpoint.h"
#include "model/exec/exec_request.h"
#include "model/reasons.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ContainerRestartTest : public ExecTest {
 protected:
  int starts() { return docker().calls("POST /containers/*/start"); }
  bool is_up() {
    return guests_.is_connected(container()) && !restarts().next() && can_run_execs();
  }
  // The daemon has taken in that the container is down, and waits.
  void wait_down() {
    run_until([&] { return restarts().next().has_value(); });
    settle();
  }
  // Ends the container; how long the daemon then waits, or nothing where the sandbox has failed.
  std::optional<std::chrono::nanoseconds> crash(int exit_code = 1, bool oom_killed = false) {
    end_container(exit_code, oom_killed);
    // Read at once: an engine that has just come back ends the wait.
    std::optional<BootTime> due;
    run_until([&] {
      due = restarts().next();
      return due || state(kBox) == v1::SANDBOX_STATE_FAILED;
    });
    settle();
    if (state(kBox) == v1::SANDBOX_STATE_FAILED) return std::nullopt;
    return *due - clock_.boot_now();
  }
  void pass(std::chrono::nanoseconds time) {
    clock_.advance(time);
    restarts().call_due();
  }
  void wait_up() {
    run_until([&] { return is_up(); });
  }
  // The wait is over, and it is up again.
  void come_up() {
    pass(*restarts().next() - clock_.boot_now());
    wait_up();
  }
  // What is tried from inside comes nowhere then.
  void unreachable_without_network() {
    const bool has_network = std::ranges::none_of(engine().containers, [](const auto& entry) {
      return entry.second.is_running() && entry.second.ipv4_address.empty();
    });
    isolation_.verification_problem = has_network ? "" : "Network is unreachable";
  }
  void cut_off_the_next_start() {
    isolation_.on_verification = [this] { unreachable_without_network(); };
    engine().on_start = [this, begin = engine().on_start](fake::Container& started) {
      begin(started);
      if (!std::exchange(has_cut_off_, true)) engine().cut_off(started);
    };
  }
  // The sandbox's own events after the create: "SANDBOX_PREPARING restart: exit code 1". The probes
  // of wait_up() are not among them.
  std::vector<std::string> own_events(const std::string& id = kBox) {
    std::vector<std::string> lines;
    for (const Seen& seen : events(id, 3)) {
      if (seen.event.has_exec()) continue;
      std::string line = v1::EventType_Name(seen.event.event_type());
      const v1::SandboxPhaseDetails& details = seen.event.sandbox_phase();
      if (!details.phase().empty()) line += " " + details.phase() + ": " + details.error_message();
      if (!details.reason().empty()) line += " " + details.reason();
      lines.push_back(std::move(line));
    }
    return lines;
  }
  static SandboxSpec with_command() {
    SandboxSpec wanted = spec();
    wanted.create_spec.add_command("serve");
    return wanted;
  }
  void expect_works(const std::string& exec_id) {
    begin_exec(exec_id);
    end_exec(exec_id, 0);
    wait_for_end(exec_id);
    EXPECT_EQ(exec(exec_id).state(), v1::EXEC_STATE_FINISHED);
  }

 private:
  // An exec that is created now reaches the guest.
  bool can_run_execs() {
    settle();
    const std::string probe = "probe-" + std::to_string(++probes_);
    if (!create_exec(probe).has_value()) return false;
    run_until([&] { return given(probe) != nullptr; });
    end_exec(probe, 0);
    wait_for_end(probe);
    return true;
  }
  int probes_ = 0;
  bool has_cut_off_ = false;
};

TEST_F(ContainerRestartTest, OneThatExitsIsStartedAgainAndTheNextExecWorks) {
  begin_exec("lost-1");
  const std::string id = primary(kBox).id;
  const int before = starts();
  EXPECT_EQ(crash(137), 100ms);
  EXPECT_EQ(exec("lost-1").error_code(), "CONTAINER_EXITED");
  EXPECT_THAT(exec("lost-1").error(), HasSubstr("it exited with code 137"));
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  pass(99ms);
  run_until_idle();
  EXPECT_EQ(starts(), before);
  come_up();
  expect_works("next-1");
  EXPECT_EQ(primary(kBox).id, id);
  EXPECT_EQ(starts(), before + 1);
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
}

// --- what clients see of it ---

TEST_F(ContainerRestartTest, ARestartIsSeenInTheEventsAndInTheHandle) {
  begin_exec("lost-1");
  EXPECT_EQ(handle(kBox).restart_count(), 0U);
  EXPECT_EQ(handle(kBox).last_exit(), "");
  const std::string since = handle(kBox).state_changed_at().SerializeAsString();
  crash(137);
  EXPECT_THAT(exec_events(),
              ElementsAre("EXEC_STARTED lost-1", "EXEC_FAILED lost-1", "SANDBOX_PREPARING"));
  EXPECT_EQ(handle(kBox).restart_count(), 0U) << "it is not up yet";
  EXPECT_EQ(handle(kBox).last_exit(), "exit code 137");
  come_up();
  EXPECT_THAT(own_events(),
              ElementsAre("SANDBOX_PREPARING restart: exit code 137", "SANDBOX_READY"));
  for (const Seen& seen : events(kBox, 3)) {
    EXPECT_EQ(seen.event.sandbox_state(), v1::SANDBOX_STATE_READY);
  }
  EXPECT_EQ(handle(kBox).restart_count(), 1U);
  EXPECT_EQ(handle(kBox).error_message(), "");
  EXPECT_EQ(handle(kBox).state_changed_at().SerializeAsString(), since);
  crash(137, true);
  come_up();
  EXPECT_EQ(own_events().at(2), "SANDBOX_PREPARING restart: exit code 137: out of memory");
  restart();
  EXPECT_EQ(handle(kBox).restart_count(), 2U);
  EXPECT_EQ(handle(kBox).last_exit(), "exit code 137: out of memory");
  stop_sandbox(kBox);
  resume_sandbox(kBox);
  EXPECT_EQ(handle(kBox).restart_count(), 2U) << "a resume is no restart";
}

TEST_F(ContainerRestartTest, ACrashLoopIsSeenRestartByRestart) {
  std::uint64_t ends = 0;
  while (crash(3)) {
    ++ends;
    come_up();
    EXPECT_EQ(handle(kBox).restart_count(), ends);
  }
  std::vector<std::string> expected;
  for (std::uint64_t i = 0; i < ends; ++i) {
    expected.insert(expected.end(), {"SANDBOX_PREPARING restart: exit code 3", "SANDBOX_READY"});
  }
  expected.emplace_back("SANDBOX_FAILED");
  EXPECT_EQ(own_events(), expected);
  EXPECT_EQ(handle(kBox).last_exit(), "exit code 3");
}

TEST_F(ContainerRestartTest, AStartThatFailsIsNoRestart) {
  crash(3);
  docker().reply("POST /containers/*/start", 500, R"({"message":"not now"})", 1);
  const BootTime first = *restarts().next();
  pass(100ms);
  run_until([&] { return restarts().next() && *restarts().next() != first; });
  come_up();
  EXPECT_THAT(own_events(), ElementsAre("SANDBOX_PREPARING restart: exit code 3", "SANDBOX_READY"));
  EXPECT_EQ(handle(kBox).restart_count(), 1U);
}

// A daemon that ends once the change is on disk, before it has acted on it.
TEST_F(ContainerRestartTest, WhatIsOnDiskIsNotReportedAgain) {
  begin_exec("lost-1");
  docker().hold("GET /containers/*/json", 1);
  end_container(9);
  run_until([&] { return docker().held("GET /containers/*/json") == 1; });
  hold_store();
  docker().release("GET /containers/*/json");
  run_until([&] { return held_reports() > 0; });
  restart();
  wait_up();
  EXPECT_EQ(exec("lost-1").error_code(), "CONTAINER_EXITED");
  EXPECT_THAT(own_events(), ElementsAre("SANDBOX_PREPARING restart: exit code 9", "SANDBOX_READY"));
  EXPECT_EQ(handle(kBox).restart_count(), 1U);

  crash(9);
  const int before = starts();
  docker().hold("POST /containers/*/start", 1);
  pass(*restarts().next() - clock_.boot_now());
  run_until([&] { return docker().held("POST /containers/*/start") == 1; });
  hold_store();
  docker().release("POST /containers/*/start");
  run_until([&] { return held_reports() > 0; });
  restart();
  wait_up();
  EXPECT_EQ(starts(), before + 1) << "it was adopted";
  EXPECT_EQ(own_events().size(), 4U);
  EXPECT_EQ(own_events().back(), "SANDBOX_READY");
  EXPECT_EQ(handle(kBox).restart_count(), 2U);
}

TEST_F(ContainerRestartTest, WhatWaitsForARestartOfAnEarlierDaemonRunsOnceItIsUp) {
  crash();
  ASSERT_TRUE(create_exec("early-1").has_value());
  restart();
  wait_given("early-1");
  EXPECT_EQ(times_begun("early-1"), 1);
  EXPECT_THAT(own_events(), ElementsAre("SANDBOX_PREPARING restart: exit code 1", "SANDBOX_READY"));
}

TEST_F(ContainerRestartTest, WhatWaitsForARestartOfAnEarlierDaemonCanBeCancelled) {
  crash();
  ASSERT_TRUE(create_exec("early-1").has_value());
  stop();
  docker().hold("POST /containers/*/start");
  start();
  run_until([&] { return docker().held("POST /containers/*/start") == 1; });
  ASSERT_TRUE(cancel_exec("early-1").has_value());
  wait_for_end("early-1");
  EXPECT_EQ(exec("early-1").state(), v1::EXEC_STATE_CANCELLED);
  docker().release("POST /containers/*/start");
  wait_up();
  EXPECT_EQ(times_begun("early-1"), 0);
}

// --- execs that wait for it ---

TEST_F(ContainerRestartTest, AnExecWaitsForARestartForThirtySeconds) {
  crash(7);
  ASSERT_TRUE(create_exec("early-1").has_value());
  clock_.advance(10s);
  ASSERT_TRUE(create_exec("early-2").has_value());
  settle();
  clock_.advance(20s - 1ms);
  exec_waits().call_due();
  settle();
  EXPECT_EQ(exec("early-1").state(), v1::EXEC_STATE_RUNNING);
  clock_.advance(1ms);
  exec_waits().call_due();
  wait_for_end("early-1");
  EXPECT_EQ(exec("early-1").state(), v1::EXEC_STATE_FAILED);
  EXPECT_EQ(exec("early-1").error_code(), "CONTAINER_EXITED");
  EXPECT_THAT(exec("early-1").error(), HasSubstr("(exit code 7)"));
  EXPECT_EQ(exec("early-2").state(), v1::EXEC_STATE_RUNNING) << "it came later";
  EXPECT_EQ(*exec_waits().next() - clock_.boot_now(), 10s);
  pass(0s);
  wait_given("early-2");
  EXPECT_FALSE(exec_waits().next().has_value());
  EXPECT_EQ(times_begun("early-1"), 0);
}

TEST_F(ContainerRestartTest, ANewDaemonLetsItWaitForThirtySecondsToo) {
  crash(7);
  ASSERT_TRUE(create_exec("early-1").has_value());
  stop();
  docker().hold("POST /containers/*/start");
  start();
  run_until([&] { return docker().held("POST /containers/*/start") == 1; });
  EXPECT_EQ(*exec_waits().next() - clock_.boot_now(), 30s);
  clock_.advance(30s);
  exec_waits().call_due();
  wait_for_end("early-1");
  EXPECT_EQ(exec("early-1").error_code(), "CONTAINER_EXITED");
  docker().release("POST /containers/*/start");
  wait_up();
  EXPECT_EQ(times_begun("early-1"), 0);
}

// The client was told, or is about to be, that it ends cancelled.
TEST_F(ContainerRestartTest, ACancelThatIsOnItsWayToTheDiskWinsOverTheEndOfTheWait) {
  crash();
  ASSERT_TRUE(create_exec("early-1").has_value());
  settle();
  std::optional<Result<>> cancelled;
  hold_store();
  directory().cancel_exec("early-1", [&](Result<> r) { cancelled = std::move(r); });
  run_until([&] { return held_reports() > 0; });
  clock_.advance(30s);
  exec_waits().call_due();
  release_store();
  run_until([&] { return cancelled.has_value(); });
  EXPECT_TRUE(cancelled->has_value());
  wait_for_end("early-1");
  EXPECT_EQ(exec("early-1").state(), v1::EXEC_STATE_CANCELLED);
}

TEST_F(ContainerRestartTest, ACancelThatIsOnItsWayToTheDiskWinsOverAFailureOfTheSandbox) {
  crash();
  ASSERT_TRUE(create_exec("early-1").has_value());
  settle();
  std::optional<Result<>> cancelled;
  docker().hold("GET /containers/*/json");
  engine().containers.erase(engine().find_container(container())->id);
  pass(100ms);
  run_until([&] { return docker().held("GET /containers/*/json") == 1; });
  hold_store();
  directory().cancel_exec("early-1", [&](Result<> r) { cancelled = std::move(r); });
  run_until([&] { return held_reports() > 0; });
  docker().release("GET /containers/*/json");
  run_until([&] { return held_reports() > 1; });
  release_store();
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  run_until([&] { return cancelled.has_value(); });
  EXPECT_TRUE(cancelled->has_value());
  EXPECT_EQ(exec("early-1").state(), v1::EXEC_STATE_CANCELLED);
}

// --- an engine that comes and goes ---

TEST_F(ContainerRestartTest, AnEngineThatIsBackEndsTheWaitBeforeARestart) {
  crash();
  const BootTime due = *restarts().next();
  docker().stop_listening();
  wait_for_loss_of_engine();
  docker().listen();
  run_until([&] { return handle(kBox).restart_count() == 1; });
  EXPECT_LT(clock_.boot_now(), due);
  wait_up();
}

TEST_F(ContainerRestartTest, WithoutEngineAndGuestNoExecIsAccepted) {
  begin_exec("ended-1");
  end_exec("ended-1", 0);
  wait_for_end("ended-1");
  begin_exec("running-1");
  docker().stop_listening();
  wait_for_loss_of_engine();
  expect_works("without-engine");
  end_container(1);
  run_until([&] { return !guests_.is_connected(container()); });
  const auto refused = create_exec("early-1");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason(), reason::kEngineUnavailable);
  for (const char* used : {"ended-1", "running-1"}) {
    EXPECT_EQ(create_exec(used).error().reason(), reason::kExecIdAlreadyExists);
  }
  EXPECT_EQ(get_exec("early-1").error().reason(), reason::kExecNotFound);
  docker().listen();
  wait_down();
  ASSERT_TRUE(create_exec("early-1").has_value());
}

// As a create does: a daemon that has just started does not know yet.
TEST_F(ContainerRestartTest, AnExecWaitsUntilTheEngineWasFirstContacted) {
  stop();
  guests_.freeze(container());
  docker().hold("GET /info");
  start();
  std::optional<Result<v1::CreateExecResponse>> created;
  directory().create_exec(kBox, parse_exec_request(request("early-1")),
                          [&](auto r) { created = std::move(r); });
  run_until_idle();
  settle();
  EXPECT_FALSE(created.has_value());
  docker().release("GET /info");
  run_until([&] { return created.has_value(); });
  EXPECT_TRUE(created->has_value()) << created->error().message();
  guests_.thaw(container());
  wait_given("early-1");
}

// --- a command that ends ---

TEST_F(ContainerRestartTest, ACommandThatEndsWithZeroStopsItsSandbox) {
  create_ready("job-1", with_command());
  begin_exec("lost-1", {}, "job-1");
  const int before = starts();
  end_container(0, false, "job-1");
  wait_for_state("job-1", v1::SANDBOX_STATE_STOPPED);
  EXPECT_THAT(exec_events("job-1"), ElementsAre("EXEC_STARTED lost-1", "EXEC_FAILED lost-1",
                                                "SANDBOX_STOP_REQUESTED", "SANDBOX_STOPPED"));
  EXPECT_THAT(own_events("job-1"), ElementsAre("SANDBOX_STOP_REQUESTED command_finished",
                                               "SANDBOX_STOPPED command_finished"));
  EXPECT_EQ(exec("lost-1").error_code(), "CONTAINER_EXITED");
  EXPECT_EQ(handle("job-1").last_exit(), "exit code 0");
  EXPECT_EQ(handle("job-1").restart_count(), 0U);
  const auto refused = create_exec(request("late-1", {}, "job-1"));
  EXPECT_THAT(refused.error().message(), HasSubstr("it is stopped (command_finished); resume it"));
  pass(1h);
  run_until_idle();
  EXPECT_EQ(starts(), before);
  resume_sandbox("job-1");
  EXPECT_EQ(starts(), before + 1);
  EXPECT_THAT(guests_.order(container("job-1"))->command(), ElementsAre("serve"));
}

TEST_F(ContainerRestartTest, ACommandThatEndsOtherwiseIsRestarted) {
  create_ready("job-1", with_command());
  end_container(3, false, "job-1");
  run_until([&] { return restarts().next().has_value(); });
  pass(100ms);
  run_until([&] { return handle("job-1").restart_count() == 1; });
  EXPECT_THAT(own_events("job-1"),
              ElementsAre("SANDBOX_PREPARING restart: exit code 3", "SANDBOX_READY"));
  EXPECT_THAT(guests_.order(container("job-1"))->command(), ElementsAre("serve"));
}

TEST_F(ContainerRestartTest, WithoutACommandAnEndWithZeroIsNotItsEnd) {
  crash(0);
  come_up();
  EXPECT_THAT(own_events(), ElementsAre("SANDBOX_PREPARING restart: exit code 0", "SANDBOX_READY"));
}

TEST_F(ContainerRestartTest, ACommandThatEndsWhileTheDaemonIsAwayStopsItsSandboxToo) {
  create_ready("job-1", with_command());
  stop();
  end_container(0, false, "job-1");
  start();
  wait_for_state("job-1", v1::SANDBOX_STATE_STOPPED);
  EXPECT_THAT(own_events("job-1"), ElementsAre("SANDBOX_STOP_REQUESTED command_finished",
                                               "SANDBOX_STOPPED command_finished"));
}

// A container that another process started is stopped, which its command may take for its end.
TEST_F(ContainerRestartTest, AnEndThatTheDaemonCausedIsNotTheCommandsOwn) {
  create_ready("job-1", with_command());
  engine().exit_code_of_stop = 0;
  stop();
  end_container(3, false, "job-1");
  start_by_hand("job-1");
  engine().find_container(container("job-1"))->started_at = "2031-01-01T00:00:00Z";
  start();
  run_until([&] { return restarts().next().has_value(); });
  ASSERT_EQ(primary("job-1").exit_code, 0);
  pass(100ms);
  run_until([&] { return handle("job-1").restart_count() == 1; });
  EXPECT_EQ(state("job-1"), v1::SANDBOX_STATE_READY);
}

// The engine reports the end of a short command before the guest's message that the entrypoint was
// passed is read.
TEST_F(ContainerRestartTest, ACommandThatIsDoneAtOnceWasStarted) {
  guests_.script.answers_go = false;
  ASSERT_TRUE(create("job-1", with_command()).has_value());
  run_until([&] { return guests_.order(container("job-1")) != nullptr; });
  constexpr auto look = "GET /containers/*/json";
  docker().hold(look);
  fake::Container& ended = *engine().find_container(container("job-1"));
  ended.status = "exited";
  ended.exit_code = 0;
  directory().recheck_container("job-1");
  run_until([&] { return docker().held(look) > 0; });
  guest::v1::ToDaemon passed;
  passed.mutable_entrypoint_passed();
  guests_.say(container("job-1"), passed);
  run_until_idle();
  docker().release(look);
  wait_for_state("job-1", v1::SANDBOX_STATE_READY);
  directory().recheck_container("job-1");
  wait_for_state("job-1", v1::SANDBOX_STATE_STOPPED);
  EXPECT_THAT(own_events("job-1"), ElementsAre("SANDBOX_STOP_REQUESTED command_finished",
                                               "SANDBOX_STOPPED command_finished"));
}

// --- down ---

TEST_F(ContainerRestartTest, TheNextDaemonTakesTheNewStartInAgain) {
  crash();
  come_up();
  const int before = starts();
  begin_exec("runs-on");
  restart();
  run_until([&] { return guests_.is_connected(container()); });
  end_exec("runs-on", 3);
  wait_for_end("runs-on");
  EXPECT_EQ(exec("runs-on").exit_code(), 3);
  EXPECT_EQ(starts(), before);
}

// Its guest is there all the time.
TEST_F(ContainerRestartTest, OneThatTheEngineTookTheNetworkFromIsStartedAgain) {
  begin_exec("lost-1");
  const int before = starts();
  engine().cut_off(*engine().find_container(container()));
  wait_down();
  EXPECT_EQ(exec("lost-1").error_code(), "CONTAINER_EXITED");
  EXPECT_THAT(exec("lost-1").error(), HasSubstr("the engine took its network away"));
  EXPECT_FALSE(primary(kBox).is_running());
  come_up();
  EXPECT_EQ(starts(), before + 1);
  EXPECT_FALSE(primary(kBox).ipv4_address.empty());
  expect_works("next-1");
}

TEST_F(ContainerRestartTest, OneThatLostItsNetworkWhileNobodyLookedIsStartedAgain) {
  stop();
  engine().cut_off(*engine().find_container(container()));
  isolation_.on_verification = [this] { unreachable_without_network(); };
  docker().hold("GET /containers/*/json");
  start();  // its guest is back before the engine tells anything of it
  run_until([&] { return guests_.is_connected(container()); });
  docker().release("GET /containers/*/json");
  wait_down();
  come_up();
  EXPECT_FALSE(primary(kBox).ipv4_address.empty());
  expect_works("next-1");
}

TEST_F(ContainerRestartTest, AResumeWhoseContainerIsWithoutItsNetworkIsTriedAgain) {
  stop_sandbox(kBox);
  cut_off_the_next_start();
  const int before = starts();
  resume_sandbox(kBox);
  EXPECT_EQ(starts(), before + 2);
  EXPECT_FALSE(primary(kBox).ipv4_address.empty());
  expect_works("next-1");
}

TEST_F(ContainerRestartTest, ACreateWhoseContainerIsWithoutItsNetworkStartsOver) {
  cut_off_the_next_start();
  const int before = starts();
  create_ready("box-2");
  EXPECT_EQ(starts(), before + 2);
  EXPECT_FALSE(primary("box-2").ipv4_address.empty());
  EXPECT_EQ(docker().calls("DELETE /containers/*"), 1);
}

TEST_F(ContainerRestartTest, OneThatTheHostCannotIsolateYetIsStartedOnceItCan) {
  stop();
  end_container(137);
  isolation_.start_problem = "the kernel has no memory for the rules";
  const unsigned tries_before = isolation_.starts;
  start();
  wait_down();
  const int before = starts();
  pass(100ms);
  run_until([&] { return isolation_.starts >= tries_before + 3; });
  settle();
  EXPECT_EQ(starts(), before);
  EXPECT_FALSE(restarts().next().has_value()) << "it counts as a crash";
  isolation_.start_problem.clear();
  wait_up();
  EXPECT_EQ(starts(), before + 1);
  expect_works("next-1");
}

TEST_F(ContainerRestartTest, AnExecThatIsAcceptedWhileItIsDownRunsOnceItIsUp) {
  crash();
  ASSERT_TRUE(create_exec("early-1").has_value());
  run_until_idle();
  EXPECT_EQ(exec("early-1").state(), v1::EXEC_STATE_RUNNING);
  EXPECT_EQ(times_begun("early-1"), 0);
  pass(100ms);
  wait_given("early-1");
  EXPECT_NE(guests_.order(container()), nullptr) << "nothing runs before the entrypoint was passed";
  end_exec("early-1", 0);
  wait_for_end("early-1");
  EXPECT_EQ(times_begun("early-1"), 1);
}

// A guest connects as soon as its container runs, which the daemon may learn of later.
TEST_F(ContainerRestartTest, AnExecThatIsAcceptedBeforeTheNewGuestIsToldToGoRunsOnceItIs) {
  crash();
  constexpr auto look = "GET /containers/*/json";
  engine().on_start = [this, begin = engine().on_start](fake::Container& started) {
    begin(started);
    docker().hold(look, 1);
  };
  pass(100ms);
  run_until([&] { return docker().held(look) == 1 && guests_.is_connected(container()); });
  run_until_idle();
  ASSERT_EQ(guests_.order(container()), nullptr);
  const auto created = create_exec("early-1");
  ASSERT_TRUE(created.has_value()) << created.error().message();
  EXPECT_EQ(times_begun("early-1"), 0);
  docker().release(look);
  wait_given("early-1");
  EXPECT_EQ(times_begun("early-1"), 1);
}

TEST_F(ContainerRestartTest, AnExecThatIsCancelledWhileItIsDownEndsAtOnce) {
  crash();
  ASSERT_TRUE(create_exec("early-1").has_value());
  ASSERT_TRUE(cancel_exec("early-1").has_value());
  wait_for_end("early-1");
  EXPECT_EQ(exec("early-1").state(), v1::EXEC_STATE_CANCELLED);
  come_up();
  EXPECT_EQ(times_begun("early-1"), 0);
}

// The engine may carry on with a start that nobody waits for, and then it is up after the stop.
TEST_F(ContainerRestartTest, AStopWaitsForTheStartThatIsUnderWay) {
  crash();
  docker().hold("POST /containers/*/start");
  pass(100ms);
  run_until([&] { return docker().held("POST /containers/*/start") == 1; });
  ASSERT_TRUE(ask_stop(kBox).has_value());
  run_until_idle();
  settle();
  EXPECT_EQ(docker().held("POST /containers/*/start"), 1);
  docker().release("POST /containers/*/start");
  wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
  EXPECT_EQ(docker().abandoned("POST /containers/*/start"), 0);
  EXPECT_FALSE(primary(kBox).is_running());
}

// --- crash loops ---

// For longer than a series may last, after one single end.
TEST_F(ContainerRestartTest, TimeWithoutAnEngineIsNoCrashLoop) {
  crash();
  docker().stop_listening();
  wait_for_loss_of_engine();
  pass(10min);
  run_until_idle();
  docker().listen();
  wait_up();
  EXPECT_EQ(crash(), 200ms);
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
}

// The last end of a series may be one after which somebody has started it.
TEST_F(ContainerRestartTest, OneThatIsGivenUpDoesNotRunOn) {
  const BootTime first = clock_.boot_now();
  while (clock_.boot_now() - first <= 5min) {
    ASSERT_TRUE(crash(3).has_value());
    come_up();
    clock_.advance(1s);
  }
  end_container(3);
  start_by_hand(kBox);
  engine().find_container(container())->started_at = "2031-01-01T00:00:00Z";
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle(kBox).error_code(), "CONTAINER_CRASHLOOP");
  EXPECT_FALSE(primary(kBox).is_running());
}

TEST_F(ContainerRestartTest, OneThatCrashesAtOnceFailsInLessThanSevenMinutes) {
  const BootTime first = clock_.boot_now();
  auto expected = 100ms;
  while (const auto wait = crash(3)) {
    EXPECT_EQ(*wait, expected);
    expected = std::min(expected * 2, std::chrono::milliseconds(60s));
    EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
    come_up();
    clock_.advance(1s);
  }
  EXPECT_GT(clock_.boot_now() - first, 5min);
  EXPECT_LT(clock_.boot_now() - first, 6min + 30s);
  EXPECT_EQ(handle(kBox).error_code(), "CONTAINER_CRASHLOOP");
  EXPECT_THAT(handle(kBox).error_message(), HasSubstr("it exited with code 3"));
  const int before = starts();
  pass(1h);
  run_until_idle();
  EXPECT_EQ(starts(), before);
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
  expect_nothing_left();
}

TEST_F(ContainerRestartTest, OneThatCrashesAfterFortySecondsIsStartedEachTime) {
  for (int run = 0; run < 12; ++run) {
    clock_.advance(40s);
    EXPECT_EQ(crash(), 100ms);
    come_up();
  }
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
}

TEST_F(ContainerRestartTest, OneThatRunsOutOfMemoryIsCalledSo) {
  begin_exec("lost-1");
  EXPECT_EQ(crash(137, true), 100ms);
  EXPECT_EQ(exec("lost-1").error_code(), "CONTAINER_OOM");
  do come_up();
  while (crash(137, true));
  EXPECT_EQ(handle(kBox).error_code(), "CONTAINER_OOM");
  EXPECT_THAT(handle(kBox).error_message(), HasSubstr("out of memory"));
}

// L16: a normal stop is no crash, and a resume begins from nothing.
TEST_F(ContainerRestartTest, AStopAndAResumeForgetTheCrashes) {
  for (int i = 0; i < 5; ++i) {
    crash();
    come_up();
  }
  stop_sandbox(kBox);
  clock_.advance(10min);
  resume_sandbox(kBox);
  EXPECT_EQ(crash(), 100ms);
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  come_up();
}

TEST_F(ContainerRestartTest, AStartThatIsRefusedCountsAsACrash) {
  EXPECT_EQ(crash(), 100ms);
  docker().reply("POST /containers/*/start", 500, R"({"message":"no space left"})");
  BootTime last{0};
  while (state(kBox) != v1::SANDBOX_STATE_FAILED) {
    const auto next = restarts().next();
    if (next && *next != last) {
      last = *next;
      pass(last - clock_.boot_now());
    }
    run_until([&] {
      return state(kBox) == v1::SANDBOX_STATE_FAILED ||
             (restarts().next() && *restarts().next() != last);
    });
  }
  EXPECT_EQ(handle(kBox).error_code(), "CONTAINER_CRASHLOOP");
  EXPECT_THAT(handle(kBox).error_message(), HasSubstr("no space left"));
}

TEST_F(ContainerRestartTest, AStartThatIsRefusedOnceIsTriedAgain) {
  EXPECT_EQ(crash(), 100ms);
  docker().reply("POST /containers/*/start", 500, R"({"message":"not now"})", 1);
  const BootTime first = *restarts().next();
  pass(100ms);
  run_until([&] { return restarts().next() && *restarts().next() != first; });
  come_up();
  expect_works("next-1");
}

TEST_F(ContainerRestartTest, AnEngineThatIsAwayIsWaitedForAndIsNoCrash) {
  EXPECT_EQ(crash(), 100ms);
  docker().stop_listening();
  pass(100ms);
  run_until_idle();
  settle();
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  docker().listen();
  wait_up();
  EXPECT_EQ(crash(), 200ms);  // the second of its series, not more
  come_up();
}

// --- by hand ---

TEST_F(ContainerRestartTest, OneThatIsRemovedByHandFailsAtOnce) {
  begin_exec("lost-1");
  engine().answer({.method = "DELETE",
                   .path = "/containers/" + primary(kBox).id,
                   .query = {{"force", "1"}},
                   .body = {},
                   .registry_auth = {}});
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle(kBox).error_code(), "CONTAINER_NOT_RUNNING");
  EXPECT_THAT(handle(kBox).error_message(), HasSubstr("it was removed"));
  EXPECT_THAT(docker().container_names(), IsEmpty()) << "nothing is made anew";
}

TEST_F(ContainerRestartTest, OneThatIsRemovedWhileItIsDownFailsAtItsNextStart) {
  crash();
  engine().answer({.method = "DELETE",
                   .path = "/containers/" + primary(kBox).id,
                   .query = {},
                   .body = {},
                   .registry_auth = {}});
  pass(100ms);
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle(kBox).error_code(), "CONTAINER_NOT_RUNNING");
  EXPECT_THAT(docker().container_names(), IsEmpty());
}

TEST_F(ContainerRestartTest, WithoutItsNetworkItFailsAndTheNetworkIsNotMadeAnew) {
  crash();
  engine().networks.erase(engine().find_network(network_name(kBox))->id);
  pass(100ms);
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle(kBox).error_code(), "NETWORK_MISSING");
  EXPECT_THAT(docker().network_names(), IsEmpty());
}

// Its guest would have nothing of ours, so it is started once more.
TEST_F(ContainerRestartTest, OneThatSomebodyRestartedIsTakenBack) {
  begin_exec("lost-1");
  stop();
  end_container(0);
  start_by_hand(kBox);
  engine().find_container(container())->started_at = "2031-01-01T00:00:00Z";
  start();
  wait_down();
  EXPECT_THAT(exec("lost-1").error(), HasSubstr("started again by another program"));
  come_up();
  expect_works("next-1");
}

TEST_F(ContainerRestartTest, OneThatIsPausedStaysReadyAndGoesOnWhereItWas) {
  begin_exec("still-1");
  fake::Container& paused = *engine().find_container(container());
  paused.is_paused = true;
  guests_.freeze(container());
  restart();
  run_until([&] { return docker().calls("GET /containers/*/json") > 0; });
  run_until_idle();
  settle();
  pass(1h);
  run_until_idle();
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
  EXPECT_EQ(exec("still-1").state(), v1::EXEC_STATE_RUNNING);
  ASSERT_TRUE(create_exec("later-1").has_value());
  paused.is_paused = false;
  guests_.thaw(container());
  wait_given("later-1");
  end_exec("still-1", 5);
  wait_for_end("still-1");
  EXPECT_EQ(exec("still-1").exit_code(), 5);
  EXPECT_EQ(times_begun("still-1"), 1);
}

TEST_F(ContainerRestartTest, AStoppedOneThatWasRemovedFailsAtTheNextStartOfTheDaemon) {
  stop_sandbox(kBox);
  stop();
  engine().answer({.method = "DELETE",
                   .path = "/containers/" + primary(kBox).id,
                   .query = {},
                   .body = {},
                   .registry_auth = {}});
  start();
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle(kBox).error_code(), "CONTAINER_NOT_RUNNING");
}

TEST_F(ContainerRestartTest, AStoppedOneThatIsThereStaysStopped) {
  stop_sandbox(kBox);
  const int before = docker().calls("GET /containers/*/json");
  restart();
  run_until([&] { return docker().calls("GET /containers/*/json") > before; });
  run_until_idle();
  settle();
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_STOPPED);
  EXPECT_FALSE(restarts().next().has_value());
}

// --- beside operations ---

TEST_F(ContainerRestartTest, AStopWhileItIsDownIsAStop) {
  crash();
  const int before = starts();
  stop_sandbox(kBox);
  pass(1h);
  run_until_idle();
  EXPECT_EQ(starts(), before);
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_STOPPED);
  resume_sandbox(kBox);
  expect_works("next-1");
}

TEST_F(ContainerRestartTest, ADeleteWhileItIsDownIsADelete) {
  crash();
  ASSERT_TRUE(create_exec("early-1").has_value());
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
  EXPECT_EQ(exec("early-1").state(), v1::EXEC_STATE_CANCELLED);
  pass(1h);
  run_until_idle();
  expect_nothing_left();
}

TEST_F(ContainerRestartTest, WhatWaitedForItIsCancelledAlsoWhereTheDeleteFails) {
  crash();
  ASSERT_TRUE(create_exec("early-1").has_value());
  docker().reply("DELETE /containers/*", 500, R"({"message":"device is busy"})");
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(exec("early-1").state(), v1::EXEC_STATE_CANCELLED);
  EXPECT_EQ(times_begun("early-1"), 0);
  EXPECT_THAT(exec_events(),
              ElementsAre("SANDBOX_PREPARING", "EXEC_STARTED early-1", "SANDBOX_DELETE_REQUESTED",
                          "EXEC_CANCELLED early-1", "SANDBOX_FAILED"));
}

TEST_F(ContainerRestartTest, ADaemonThatEndsAnywhereInARestartIsFollowedByOneThatDoesIt) {
  for (const std::string& point :
       {"inspect.turn.before",     "inspect.turn.after",      "inspect.container.before",
        "inspect.container.after", "inspect.network.before",  "inspect.network.after",
        "resume.isolation.before", "resume.isolation.after",  "resume.network.before",
        "resume.network.after",    "resume.container.before", "resume.container.after",
        "resume.turn.before",      "resume.turn.after",       "start.container.before",
        "start.container.after",   "start.inspect.before",    "start.inspect.after",
        "start.hello.before",      "start.hello.after",       "start.verify.before",
        "start.verify.after",      "start.entrypoint.before", "start.entrypoint.after"}) {
    SCOPED_TRACE(point);
    std::string exec_id = "at-" + std::string(point);
    std::ranges::replace(exec_id, '.', '-');
    begin_exec(exec_id);
    const std::size_t events_before = own_events().size();
    const std::uint64_t restarts_before = handle(kBox).restart_count();
    ASSERT_TRUE(failpoint::arm(std::string(point) + "=hold"));
    end_container(1);
    run_until([&] { return restarts().next() || failpoint::passages(point) > 0; });
    if (restarts().next()) pass(*restarts().next() - clock_.boot_now());
    wait_held_at(point);
    stop();
    disarm();
    start();
    run_until([&] { return restarts().next() || guests_.is_connected(container()); });
    if (restarts().next()) come_up();
    wait_up();
    EXPECT_EQ(exec(exec_id).error_code(), "CONTAINER_EXITED");
    EXPECT_EQ(times_begun(exec_id), 1);
    auto own = own_events();
    own.erase(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(events_before));
    EXPECT_THAT(own, ElementsAre("SANDBOX_PREPARING restart: exit code 1", "SANDBOX_READY"));
    EXPECT_EQ(handle(kBox).restart_count(), restarts_before + 1);
    EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
    EXPECT_THAT(docker().container_names(), SizeIs(1));
    EXPECT_THAT(docker().network_names(), SizeIs(1));
    clock_.advance(40s);
  }
}

TEST_F(ContainerRestartTest, ADaemonThatEndsWhileItStopsAnUnusableOneIsFollowedByOneThatDoesIt) {
  for (const std::string& point : {"inspect.stop.before", "inspect.stop.after"}) {
    SCOPED_TRACE(point);
    const std::string id = point.ends_with("before") ? "cut-1" : "cut-2";
    create_ready(id);
    stop();
    guests_.freeze(container(id));  // or nobody would look
    engine().find_container(container(id))->network.clear();
    engine().networks.erase(engine().find_network(network_name(id))->id);
    ASSERT_TRUE(failpoint::arm(point + "=hold"));
    start();
    wait_held_at(point);
    EXPECT_EQ(state(id), v1::SANDBOX_STATE_READY);
    stop();
    disarm();
    start();
    wait_for_state(id, v1::SANDBOX_STATE_FAILED);
    EXPECT_EQ(handle(id).error_code(), "NETWORK_MISSING");
    EXPECT_FALSE(primary(id).is_running());
  }
}

TEST_F(ContainerRestartTest, ADeleteAnywhereInARestartWins) {
  for (const std::string& point : {"resume.network.after", "start.container.after",
                                   "start.hello.after", "start.entrypoint.before"}) {
    SCOPED_TRACE(point);
    std::string id = "at-" + std::string(point);
    std::ranges::replace(id, '.', '-');
    create_ready(id);
    ASSERT_TRUE(failpoint::arm(std::string(point) + "=hold"));
    end_container(1, false, id);
    run_until([&] { return restarts().next().has_value(); });
    pass(100ms);
    wait_held_at(point);
    ASSERT_TRUE(remove(id).has_value());
    disarm();
    wait_for_state(id, v1::SANDBOX_STATE_DELETED);
    EXPECT_THAT(docker().container_names(), ElementsAre(container()));
  }
}

}  // namespace
}  // namespace agbox
