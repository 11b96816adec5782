// SPDX-License-Identifier: Apache-2.0
// Companions and services of a sandbox: order, health, commands on the primary, and their life with
// the sandbox and without it.
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <chrono>

#include "base/failpoint.h"
#include "model/object_names.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::UnorderedElementsAre;

const std::string kCheck = "healthcheck { test: 'CMD' test: 'ready' } ";

class CompanionsTest : public ControlTest {
 protected:
  CompanionsTest() {
    engine().add_image("db");
    start();
    wait_swept();
  }

  static SandboxSpec with(const std::string& companions) {
    v1::CreateSpec spec;
    const bool is_valid = google::protobuf::TextFormat::ParseFromString(
        "image: 'busybox' envs { key: 'HOME' value: '/home/other' } " + companions, &spec);
    AGBOX_CHECK(is_valid, "a spec of a test");
    return parse_create_spec(std::move(spec)).value();
  }
  static std::string entry(const std::string& list, const std::string& name,
                           const std::string& rest = kCheck) {
    return list + " { name: '" + name + "' image: 'db' " + rest + " } ";
  }

  fake::Container* companion(const std::string& name) {
    return engine().find_container("agbox-cc-" + id_ + "-" + name);
  }
  bool runs(const std::string& name) {
    const fake::Container* const found = companion(name);
    return found != nullptr && found->is_running();
  }
  void wait_runs(const std::string& name) {
    run_until([&] { return runs(name); });
  }
  // What its health check finds from now on, run by the engine or by the daemon.
  void set_probe(const std::string& name, int exit_code) {
    engine().probes[name] = {.exit_code = exit_code, .output = {}};
  }
  // Runs of health checks, of all companions, from now on.
  void wait_for_probes(int count) {
    const int before = docker().calls("GET /exec/*/json");
    run_until([&] { return docker().calls("GET /exec/*/json") >= before + count; });
  }
  void end(const std::string& name, int exit_code) {
    engine().end_container(*companion(name), exit_code);
  }

  v1::CompanionStatus status(const std::string& name) {
    const v1::SandboxHandle shown = handle(id_);
    for (const v1::CompanionStatus& one : shown.companions()) {
      if (one.name() == name) return one;
    }
    return {};
  }
  void wait_for(const std::string& name, v1::CompanionState wanted) {
    run_until([&] { return status(name).state() == wanted; });
  }
  // "SANDBOX_READY", "COMPANION_CONTAINER_READY db", without PREPARING.
  std::vector<std::string> history() {
    std::vector<std::string> lines;
    for (const Seen& seen : events(id_)) {
      if (seen.event.event_type() == v1::SANDBOX_PREPARING) continue;
      std::string line = v1::EventType_Name(seen.event.event_type());
      if (seen.event.has_companion_container()) {
        line += " " + seen.event.companion_container().name();
      }
      lines.push_back(std::move(line));
    }
    return lines;
  }
  v1::SandboxEvent last_of(v1::EventType type) {
    v1::SandboxEvent last;
    for (const Seen& seen : events(id_)) {
      if (seen.event.event_type() == type) last = seen.event;
    }
    return last;
  }
  long count_of(v1::EventType type) { return std::ranges::count(event_types(id_), type); }

  // The hook that the primary's guest has now; empty if none.
  std::string hook() {
    for (const std::string& exec_id : guests_.begun()) {
      const GivenExec* const given = guests_.exec(primary_container_name(id_), exec_id);
      if (exec_id.starts_with("hook-db-") && given != nullptr && !given->end) return exec_id;
    }
    return "";
  }
  std::string wait_for_hook() {
    run_until([&] { return !hook().empty(); });
    return hook();
  }
  long hooks_begun() const {
    return std::ranges::count_if(guests_.begun(),
                                 [](const auto& id) { return id.starts_with("hook-db-"); });
  }
  void end_hook(const std::string& exec_id, int exit_code) {
    guests_.end_exec(primary_container_name(id_), exec_id, exit_code);
  }

  std::string id_ = "with-1";
};

// --- the three lists ---

TEST_F(CompanionsTest, RequiredServicesStartOneAfterAnotherAndGateReady) {
  set_probe("one", 1);
  set_probe("two", 1);
  ASSERT_TRUE(
      create(id_, with(entry("required_services", "one") + entry("required_services", "two"))));
  wait_runs("one");
  run_until([&] { return guests_.is_connected(primary_container_name(id_)); });
  wait_for_probes(3);  // long enough for another one to be created and started
  EXPECT_EQ(companion("two"), nullptr);
  set_probe("one", 0);
  wait_runs("two");
  EXPECT_EQ(state(id_), v1::SANDBOX_STATE_PENDING);
  EXPECT_THAT(history(), ElementsAre("SANDBOX_ACCEPTED"));
  set_probe("two", 0);
  wait_for_state(id_, v1::SANDBOX_STATE_READY);
  EXPECT_THAT(history(), ElementsAre("SANDBOX_ACCEPTED", "COMPANION_CONTAINER_READY one",
                                     "COMPANION_CONTAINER_READY two", "SANDBOX_READY"));
  EXPECT_EQ(last_of(v1::COMPANION_CONTAINER_READY).sandbox_state(), v1::SANDBOX_STATE_PENDING);
  EXPECT_EQ(status("two").state(), v1::COMPANION_STATE_READY);
  EXPECT_EQ(status("two").health(), "healthy");
  EXPECT_EQ(status("two").role(), v1::COMPANION_ROLE_REQUIRED_SERVICE);
}

TEST_F(CompanionsTest, OthersDoNotGateReadyAndAreReportedWhenHealthy) {
  set_probe("cache", 1);
  set_probe("web", 1);
  create_ready(id_,
               with(entry("optional_services", "cache") + entry("companion_containers", "web")));
  wait_runs("cache");
  wait_runs("web");
  EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_READY), 0);
  set_probe("web", 0);
  wait_for("web", v1::COMPANION_STATE_READY);
  set_probe("cache", 0);
  wait_for("cache", v1::COMPANION_STATE_READY);
  EXPECT_THAT(history(),
              ElementsAre("SANDBOX_ACCEPTED", "SANDBOX_READY", "COMPANION_CONTAINER_READY web",
                          "COMPANION_CONTAINER_READY cache"));
  EXPECT_EQ(last_of(v1::COMPANION_CONTAINER_READY).sandbox_state(), v1::SANDBOX_STATE_READY);
}

TEST_F(CompanionsTest, OneWithoutAHealthCheckIsReadyWhenItRuns) {
  create_ready(id_, with(entry("required_services", "db", "")));
  EXPECT_THAT(history(),
              ElementsAre("SANDBOX_ACCEPTED", "COMPANION_CONTAINER_READY db", "SANDBOX_READY"));
  EXPECT_EQ(status("db").health(), "");
}

TEST_F(CompanionsTest, TheEnginesOwnCheckCountsToo) {
  set_probe("db", 1);
  ASSERT_TRUE(create(id_, with(entry("required_services", "db"))));
  wait_runs("db");
  engine().set_health(*companion("db"), "healthy");
  wait_for_state(id_, v1::SANDBOX_STATE_READY);
}

TEST_F(CompanionsTest, NothingStartsBeforeTheNetworkIsVerified) {
  isolation_.verification_problem = "no rule is for it";
  ASSERT_TRUE(create(id_, with(entry("companion_containers", "web"))));
  wait_for_state(id_, v1::SANDBOX_STATE_FAILED);
  EXPECT_THAT(handle(id_).error_message(), HasSubstr("no rule is for it"));
  EXPECT_EQ(docker().calls("POST /containers/agbox-cc-*/start"), 0);
  expect_nothing_left();
}

TEST_F(CompanionsTest, MoreThanStartAtOnceAllStart) {
  std::string many;
  for (int i = 0; i < 12; ++i) many += entry("companion_containers", "c" + std::to_string(i));
  create_ready(id_, with(many));
  run_until([&] { return count_of(v1::COMPANION_CONTAINER_READY) == 12; });
}

// --- failures ---

TEST_F(CompanionsTest, ARequiredServiceThatEndsFailsTheCreate) {
  set_probe("db", 1);
  ASSERT_TRUE(create(id_, with(entry("required_services", "db"))));
  wait_runs("db");
  end("db", 3);
  wait_for_state(id_, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle(id_).error_code(), "SANDBOX_CREATE_FAILED");
  EXPECT_THAT(handle(id_).error_message(), HasSubstr("service db ended"));
  EXPECT_THAT(handle(id_).error_message(), HasSubstr("code 3"));
  EXPECT_THAT(history(), ElementsAre("SANDBOX_ACCEPTED", "SANDBOX_FAILED"));
  expect_nothing_left();
}

TEST_F(CompanionsTest, ARequiredServiceThatIsUnhealthyFailsTheCreateWithWhatItsCheckPrinted) {
  set_probe("db", 1);
  ASSERT_TRUE(create(id_, with(entry("required_services", "db"))));
  wait_runs("db");
  engine().set_health(*companion("db"), "unhealthy", "no pg_hba.conf entry");
  wait_for_state(id_, v1::SANDBOX_STATE_FAILED);
  EXPECT_THAT(handle(id_).error_message(), HasSubstr("service db is unhealthy"));
  EXPECT_THAT(handle(id_).error_message(), HasSubstr("no pg_hba.conf entry"));
  expect_nothing_left();
}

TEST_F(CompanionsTest, AnImageThatCannotBeHadIsTheCompanionsProblemAlone) {
  const auto with_image = [&](const std::string& list) {
    return with(list + " { name: 'db' image: 'nowhere/nothing' }");
  };
  create_ready(id_, with_image("optional_services"));
  wait_for("db", v1::COMPANION_STATE_FAILED);
  EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_FAILED), 1);
  const auto failed = last_of(v1::COMPANION_CONTAINER_FAILED).companion_container();
  EXPECT_EQ(failed.error_code(), "COMPANION_CONTAINER_FAILED");
  EXPECT_THAT(failed.error_message(), HasSubstr("nowhere/nothing"));

  ASSERT_TRUE(create("other-1", with_image("required_services")));
  wait_for_state("other-1", v1::SANDBOX_STATE_FAILED);
  EXPECT_THAT(handle("other-1").error_message(), HasSubstr("nowhere/nothing"));
}

TEST_F(CompanionsTest, ACompanionThatKeepsEndingIsReportedOnce) {
  set_probe("web", 1);
  create_ready(id_, with(entry("companion_containers", "web")));
  for (int i = 0; i < 3; ++i) {
    wait_runs("web");
    end("web", 1);
    run_until([&] { return !runs("web") || companion("web")->exits > i; });
  }
  wait_runs("web");
  EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_FAILED), 1);
  set_probe("web", 0);
  wait_for("web", v1::COMPANION_STATE_READY);
  EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_READY), 1);
  EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_FAILED), 1);
  EXPECT_EQ(status("web").error_message(), "");
}

TEST_F(CompanionsTest, ACompanionThatEndsIsRestarted) {
  create_ready(id_, with(entry("required_services", "db")));
  const std::string container = companion("db")->id;
  end("db", 137);
  run_until([&] { return count_of(v1::COMPANION_CONTAINER_READY) == 2; });
  EXPECT_THAT(history(),
              ElementsAre("SANDBOX_ACCEPTED", "COMPANION_CONTAINER_READY db", "SANDBOX_READY",
                          "COMPANION_CONTAINER_FAILED db", "COMPANION_CONTAINER_READY db"));
  EXPECT_EQ(last_of(v1::COMPANION_CONTAINER_FAILED).companion_container().error_code(),
            "CONTAINER_NOT_RUNNING");
  const auto ready = last_of(v1::COMPANION_CONTAINER_READY).companion_container();
  EXPECT_EQ(ready.error_code() + ready.error_message(), "");
  EXPECT_EQ(companion("db")->id, container);
  EXPECT_EQ(status("db").restart_count(), 1);
  EXPECT_EQ(status("db").last_exit(), "exit code 137");
  EXPECT_EQ(state(id_), v1::SANDBOX_STATE_READY);
}

TEST_F(CompanionsTest, OneThatIsRestartedHasToBecomeHealthyAgain) {
  create_ready(id_, with(entry("optional_services", "db")));
  wait_for("db", v1::COMPANION_STATE_READY);
  set_probe("db", 1);
  end("db", 1);
  run_until([&] { return status("db").restart_count() == 1; });
  wait_for_probes(3);
  EXPECT_EQ(status("db").state(), v1::COMPANION_STATE_FAILED);
  EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_READY), 1);
  set_probe("db", 0);
  wait_for("db", v1::COMPANION_STATE_READY);
}

TEST_F(CompanionsTest, ARequiredServiceThatIsNotHealthyInTimeFailsTheCreate) {
  set_probe("db", 1);
  ASSERT_TRUE(
      create(id_, with(entry("required_services", "db",
                             "healthcheck { test: 'CMD' test: 'ready' retries: 1 "
                             "interval { nanos: 50000000 } timeout { nanos: 50000000 } }"))));
  wait_for_state(id_, v1::SANDBOX_STATE_FAILED);
  EXPECT_THAT(handle(id_).error_message(), HasSubstr("service db did not become healthy within"));
}

// One whose health changes again and again is reported less and less often.
TEST_F(CompanionsTest, AFlappingHealthIsReportedLessAndLessOften) {
  create_ready(id_, with(entry("optional_services", "db")));
  wait_for("db", v1::COMPANION_STATE_READY);
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) {
    engine().set_health(*companion("db"), "unhealthy");
    wait_for("db", v1::COMPANION_STATE_FAILED);
    engine().set_health(*companion("db"), "healthy");
    wait_for("db", v1::COMPANION_STATE_READY);
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(700));
}

TEST_F(CompanionsTest, OneThatBecomesUnhealthyIsReportedAndRecovers) {
  create_ready(id_, with(entry("optional_services", "db")));
  wait_for("db", v1::COMPANION_STATE_READY);
  engine().set_health(*companion("db"), "unhealthy");
  wait_for("db", v1::COMPANION_STATE_FAILED);
  EXPECT_EQ(status("db").health(), "unhealthy");
  EXPECT_EQ(status("db").error_code(), "CONTAINER_UNHEALTHY");
  engine().set_health(*companion("db"), "healthy");
  wait_for("db", v1::COMPANION_STATE_READY);
  EXPECT_EQ(status("db").health(), "healthy");
  EXPECT_EQ(status("db").restart_count(), 0);
}

TEST_F(CompanionsTest, OneWithoutAHealthCheckThatKeepsEndingIsNotReadyEachTime) {
  create_ready(id_, with(entry("companion_containers", "web", "")));
  wait_for("web", v1::COMPANION_STATE_READY);
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 1; i <= 4; ++i) {
    wait_runs("web");
    end("web", 1);
    run_until([&] { return status("web").restart_count() == static_cast<unsigned>(i); });
  }
  // 100, 200, 400 and 800 ms.
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(1500));
  wait_for("web", v1::COMPANION_STATE_READY);
  EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_READY), 2);
  EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_FAILED), 1);
}

TEST_F(CompanionsTest, OneIsNotRestartedBeforeItsNetworkIsIsolated) {
  create_ready(id_, with(entry("companion_containers", "web")));
  wait_for("web", v1::COMPANION_STATE_READY);
  const int starts = docker().calls("POST /containers/agbox-cc-*/start");
  isolation_.verification_problem = "no rule is for it";
  end("web", 1);
  wait_for("web", v1::COMPANION_STATE_FAILED);
  const std::size_t verifications = isolation_.verifications.size();
  run_until([&] { return isolation_.verifications.size() >= verifications + 2; });
  EXPECT_EQ(docker().calls("POST /containers/agbox-cc-*/start"), starts);
  isolation_.verification_problem.clear();
  wait_for("web", v1::COMPANION_STATE_READY);
}

// --- commands on the primary ---

const std::string kHooks = kCheck +
                           "post_start_on_primary: 'first' post_start_on_primary: 'second' "
                           "envs { key: 'PGUSER' value: 'me' } ";

TEST_F(CompanionsTest, HooksOfARequiredServiceRunInOrderBeforeReady) {
  ASSERT_TRUE(create(id_, with(entry("required_services", "db", kHooks))));
  const std::string first = wait_for_hook();
  const auto& order = guests_.exec(primary_container_name(id_), first)->order;
  EXPECT_THAT(order.command(), ElementsAre("sh", "-lc", "first"));
  EXPECT_THAT(order.environment(), ElementsAre("HOME=/home/other", "PGUSER=me"));
  EXPECT_EQ(state(id_), v1::SANDBOX_STATE_PENDING);
  end_hook(first, 0);
  run_until([&] { return !hook().empty() && hook() != first; });
  EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_READY), 0);
  end_hook(hook(), 0);
  wait_for_state(id_, v1::SANDBOX_STATE_READY);
  EXPECT_THAT(history(),
              ElementsAre("SANDBOX_ACCEPTED", "COMPANION_CONTAINER_READY db", "SANDBOX_READY"));
}

TEST_F(CompanionsTest, AFailingHookOfARequiredServiceFailsTheCreate) {
  ASSERT_TRUE(create(id_, with(entry("required_services", "db", kHooks))));
  const std::string first = wait_for_hook();
  ASSERT_EQ(::write(guests_.exec(primary_container_name(id_), first)->err.get(), "no role\n", 8),
            8);
  end_hook(first, 4);
  wait_for_state(id_, v1::SANDBOX_STATE_FAILED);
  EXPECT_THAT(handle(id_).error_message(), HasSubstr("command 1 of 2 of db failed: exit code 4"));
  EXPECT_THAT(handle(id_).error_message(), HasSubstr("its output ends with: no role"));
  expect_nothing_left();
}

TEST_F(CompanionsTest, AFailingHookOfACompanionIsItsFailureAlone) {
  create_ready(id_, with(entry("companion_containers", "db", kHooks)));
  end_hook(wait_for_hook(), 4);
  wait_for("db", v1::COMPANION_STATE_FAILED);
  EXPECT_EQ(status("db").error_code(), "POST_START_HOOK_FAILED");
  EXPECT_EQ(state(id_), v1::SANDBOX_STATE_READY);
  EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_FAILED), 1);
  EXPECT_EQ(hooks_begun(), 1);
}

TEST_F(CompanionsTest, AHookRunsOnceThoughTheDaemonCrashes) {
  int number = 0;
  for (const std::string point : {"hook.commit.before", "hook.commit.after",
                                  "hook.end_commit.before", "hook.end_commit.after"}) {
    SCOPED_TRACE(point);
    id_ = "hook-" + std::to_string(++number);
    ASSERT_TRUE(failpoint::arm(point + "=hold"));
    create_ready(
        id_, with(entry("companion_containers", "db", kCheck + "post_start_on_primary: 'once'")));
    if (point.starts_with("hook.end")) end_hook(wait_for_hook(), 0);
    wait_held_at(point);
    crash();
    disarm();
    start();
    if (!point.starts_with("hook.end")) end_hook(wait_for_hook(), 0);
    wait_for("db", v1::COMPANION_STATE_READY);
    EXPECT_EQ(hooks_begun(), number);
  }
}

TEST_F(CompanionsTest, ARunningHookGoesOnOverARestartOfTheDaemon) {
  create_ready(id_, with(entry("companion_containers", "db", kHooks)));
  const std::string first = wait_for_hook();
  restart();
  EXPECT_EQ(hook(), first);
  end_hook(first, 0);
  run_until([&] { return !hook().empty() && hook() != first; });
  crash();
  start();
  end_hook(hook(), 0);
  wait_for("db", v1::COMPANION_STATE_READY);
  EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_READY), 1);
  EXPECT_EQ(hooks_begun(), 2);
}

TEST_F(CompanionsTest, AHookThatIsLostWithThePrimaryIsNotRunAgain) {
  create_ready(id_, with(entry("companion_containers", "db", kHooks)));
  wait_for_hook();
  engine().end_container(*engine().find_container(primary_container_name(id_)), 1);
  wait_for("db", v1::COMPANION_STATE_FAILED);
  EXPECT_THAT(status("db").error_message(), HasSubstr("primary container ended"));
  run_until([&] { return restarts().next().has_value(); });
  clock_.advance(*restarts().next() - clock_.boot_now());
  restarts().call_due();
  run_until([&] { return handle(id_).restart_count() == 1; });
  run_until_idle();
  EXPECT_EQ(hooks_begun(), 1);
}

TEST_F(CompanionsTest, ACompanionThatEndsDuringItsHookIsRestarted) {
  create_ready(id_, with(entry("companion_containers", "db",
                               kCheck + "post_start_on_primary: 'waits for it'")));
  const std::string running = wait_for_hook();
  end("db", 1);
  run_until([&] { return status("db").restart_count() == 1; });
  end_hook(running, 0);
  wait_for("db", v1::COMPANION_STATE_READY);
  EXPECT_EQ(hooks_begun(), 1);
}

TEST_F(CompanionsTest, HooksAreNotExecsOfClients) {
  create_ready(id_, with(entry("companion_containers", "db", kHooks)));
  wait_for_hook();
  EXPECT_THAT(directory().list_active_execs({}).execs(), IsEmpty());
  EXPECT_EQ(count_of(v1::EXEC_STARTED), 0);
}

// --- their life with the sandbox ---

TEST_F(CompanionsTest, TheyStopAndResumeWithTheSandbox) {
  create_ready(
      id_, with(entry("required_services", "db", kCheck) + entry("optional_services", "cache")));
  wait_for("cache", v1::COMPANION_STATE_READY);
  const std::string db = companion("db")->id;
  stop_sandbox(id_);
  EXPECT_FALSE(runs("db"));
  EXPECT_FALSE(runs("cache"));
  EXPECT_EQ(status("db").state(), v1::COMPANION_STATE_STOPPED);
  set_probe("db", 1);
  ASSERT_TRUE(ask_resume(id_));
  wait_runs("db");
  EXPECT_EQ(state(id_), v1::SANDBOX_STATE_PENDING);
  set_probe("db", 0);
  wait_for_state(id_, v1::SANDBOX_STATE_READY);
  wait_for("cache", v1::COMPANION_STATE_READY);
  EXPECT_EQ(companion("db")->id, db);
  EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_FAILED), 0);
  EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_READY), 4);
  EXPECT_EQ(status("db").restart_count(), 0);
}

TEST_F(CompanionsTest, HooksAreNotRunAgainByAResume) {
  ASSERT_TRUE(create(
      id_, with(entry("required_services", "db", kCheck + "post_start_on_primary: 'once'"))));
  end_hook(wait_for_hook(), 0);
  wait_for_state(id_, v1::SANDBOX_STATE_READY);
  const auto begun = guests_.begun().size();
  stop_sandbox(id_);
  resume_sandbox(id_);
  EXPECT_EQ(guests_.begun().size(), begun);
}

TEST_F(CompanionsTest, OneThatWasNeverMadeDoesNotPreventAResume) {
  create_ready(id_, with("optional_services { name: 'db' image: 'nowhere/nothing' }"));
  wait_for("db", v1::COMPANION_STATE_FAILED);
  stop_sandbox(id_);
  resume_sandbox(id_);
  wait_for("db", v1::COMPANION_STATE_FAILED);
  EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_FAILED), 2);
}

TEST_F(CompanionsTest, ARequiredServiceThatDoesNotComeBackFailsTheResume) {
  create_ready(id_, with(entry("required_services", "db", "")));
  stop_sandbox(id_);
  docker().reply("POST /containers/agbox-cc-*/start", 500, R"({"message":"no room"})");
  ASSERT_TRUE(ask_resume(id_));
  wait_for_state(id_, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle(id_).error_code(), "SANDBOX_RESUME_FAILED");
  EXPECT_THAT(handle(id_).error_message(), HasSubstr("no room"));
  EXPECT_FALSE(primary(id_).is_running());
}

TEST_F(CompanionsTest, ADeleteDuringACreateLeavesNothing) {
  set_probe("db", 1);
  ASSERT_TRUE(
      create(id_, with(entry("required_services", "db") + entry("companion_containers", "web"))));
  wait_runs("db");
  wait_runs("web");
  ASSERT_TRUE(remove(id_));
  wait_for_state(id_, v1::SANDBOX_STATE_DELETED);
  expect_nothing_left();
}

TEST_F(CompanionsTest, NoEventOfTheirsComesAfterTheDeleteWasRequested) {
  const std::string start = "POST /containers/agbox-primary-" + id_ + "/start";
  docker().hold(start);
  set_probe("web", 1);
  ASSERT_TRUE(create(id_, with(entry("companion_containers", "web"))));
  wait_runs("web");
  run_until([&] { return docker().calls(start) == 1; });
  ASSERT_TRUE(remove(id_));  // waits for the start, which the engine completes
  engine().set_health(*companion("web"), "healthy");
  create_ready("other-1");  // longer than it takes to notice
  docker().release(start);
  wait_for_state(id_, v1::SANDBOX_STATE_DELETED);
  EXPECT_THAT(history(),
              ElementsAre("SANDBOX_ACCEPTED", "SANDBOX_DELETE_REQUESTED", "SANDBOX_DELETED"));
}

TEST_F(CompanionsTest, TheyOutliveTheDaemonWithoutAnEvent) {
  create_ready(id_, with(entry("required_services", "db") + entry("optional_services", "cache")));
  wait_for("cache", v1::COMPANION_STATE_READY);
  const auto before = history();
  restart();
  wait_swept();
  run_until([&] { return status("db").health() == "healthy"; });
  EXPECT_EQ(history(), before);
  EXPECT_TRUE(runs("db"));
  EXPECT_TRUE(runs("cache"));
  EXPECT_EQ(status("cache").state(), v1::COMPANION_STATE_READY);
}

TEST_F(CompanionsTest, OneThatEndedWhileTheDaemonWasAwayIsRestarted) {
  create_ready(id_, with(entry("required_services", "db")));
  stop();
  end("db", 1);
  start();
  run_until([&] { return count_of(v1::COMPANION_CONTAINER_READY) == 2; });
  EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_FAILED), 1);
  EXPECT_EQ(status("db").restart_count(), 1);
}

TEST_F(CompanionsTest, OneThatWasBeingMadeWhenTheDaemonCrashedIsMade) {
  int number = 0;
  for (const std::string point :
       {"companions.verify.before", "companions.verify.after", "companion.image.before",
        "companion.image.after", "companion.container.before", "companion.container.after",
        "companion.find.before", "companion.find.after", "companion.account_files.before",
        "companion.account_files.after", "companion.start.before", "companion.start.after",
        "companion.started.before", "companion.started.after", "companion.inspect.before",
        "companion.inspect.after", "companion.probe.before", "companion.probe.after"}) {
    SCOPED_TRACE(point);
    id_ = "made-" + std::to_string(++number);
    ASSERT_TRUE(failpoint::arm(point + "=hold"));
    ASSERT_TRUE(create(id_, with(entry("companion_containers", "web"))));
    wait_held_at(point);
    crash();
    disarm();
    start();
    wait_swept();
    wait_for_state(id_, v1::SANDBOX_STATE_READY);
    wait_for("web", v1::COMPANION_STATE_READY);
    EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_FAILED), 0);
    EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_READY), 1);
    EXPECT_THAT(docker().container_names(), testing::Contains(companion("web")->name));
    ASSERT_TRUE(remove(id_));
    wait_for_state(id_, v1::SANDBOX_STATE_DELETED);
    expect_nothing_left();
  }
}

TEST_F(CompanionsTest, OneWhoseOutputWasBeingReadWhenTheDaemonCrashedIsRestarted) {
  int number = 0;
  for (const std::string point : {"companion.output.before", "companion.output.after"}) {
    SCOPED_TRACE(point);
    id_ = "read-" + std::to_string(++number);
    create_ready(id_, with(entry("companion_containers", "web")));
    wait_for("web", v1::COMPANION_STATE_READY);
    ASSERT_TRUE(failpoint::arm(point + "=hold"));
    end("web", 1);
    wait_held_at(point);
    crash();
    disarm();
    start();
    run_until([&] { return count_of(v1::COMPANION_CONTAINER_READY) == 2; });
    EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_FAILED), 1);
  }
}

TEST_F(CompanionsTest, AFailedSandboxStopsThem) {
  create_ready(id_, with(entry("companion_containers", "web")));
  wait_for("web", v1::COMPANION_STATE_READY);
  const std::string id = primary(id_).id;
  engine().answer({.method = "DELETE",
                   .path = "/containers/" + id,
                   .query = {{"force", "1"}},
                   .body = {},
                   .registry_auth = {}});
  wait_for_state(id_, v1::SANDBOX_STATE_FAILED);
  run_until([&] { return !runs("web"); });
  ASSERT_TRUE(remove(id_));
  wait_for_state(id_, v1::SANDBOX_STATE_DELETED);
  expect_nothing_left();
}

TEST_F(CompanionsTest, AFailedSandboxStopsThemThoughTheDaemonCrashes) {
  create_ready(id_, with(entry("companion_containers", "web")));
  wait_for("web", v1::COMPANION_STATE_READY);
  docker().hang("POST /containers/agbox-cc-*/stop");
  engine().answer({.method = "DELETE",
                   .path = "/containers/" + primary(id_).id,
                   .query = {{"force", "1"}},
                   .body = {},
                   .registry_auth = {}});
  wait_for_state(id_, v1::SANDBOX_STATE_FAILED);
  crash();
  docker().clear_faults();
  EXPECT_TRUE(runs("web"));
  start();
  run_until([&] { return !runs("web"); });
}

TEST_F(CompanionsTest, TheyArePausedWithTheSandboxAndNotRestartedMeanwhile) {
  create_ready(id_, with(entry("companion_containers", "web")));
  wait_for("web", v1::COMPANION_STATE_READY);
  isolation_.verification_problem = "no rule is for it";
  isolation_.repair();
  run_until([&] { return handle(id_).paused(); });
  EXPECT_TRUE(companion("web")->is_paused);
  isolation_.verification_problem.clear();
  isolation_.repair();
  run_until([&] { return handle(id_).isolation_problem().empty() && !handle(id_).paused(); });
  EXPECT_FALSE(companion("web")->is_paused);
  end("web", 1);
  run_until([&] { return status("web").restart_count() == 1; });
}

// Nothing else would: a primary that does not run is not paused.
TEST_F(CompanionsTest, TheyAreStoppedIfTheIsolationFailsWhileThePrimaryIsDown) {
  create_ready(id_, with(entry("companion_containers", "web")));
  wait_for("web", v1::COMPANION_STATE_READY);
  engine().end_container(*engine().find_container(primary_container_name(id_)), 1);
  run_until([&] { return restarts().next().has_value(); });
  isolation_.lose_rules("no rule is for it");
  run_until([&] { return !runs("web"); });
  isolation_.verification_problem.clear();
  isolation_.repair();
  wait_runs("web");
}

TEST_F(CompanionsTest, AnEngineThatIsAwayDecidesNothing) {
  create_ready(id_, with(entry("companion_containers", "web")));
  wait_for("web", v1::COMPANION_STATE_READY);
  docker().stop_listening();
  wait_for_loss_of_engine();
  docker().listen();
  wait_for_engine();
  wait_swept();
  run_until_idle();
  EXPECT_EQ(count_of(v1::COMPANION_CONTAINER_FAILED), 0);
  EXPECT_TRUE(runs("web"));
}

}  // namespace
}  // namespace agbox
