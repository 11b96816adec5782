// SPDX-License-Identifier: Apache-2.0
// Commands in services and companions: their guest is started when it is needed, and they have the
// guarantees of those in the primary.
#include <google/protobuf/text_format.h>

#include "base/failpoint.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class CompanionExecsTest : public ExecTest {
 protected:
  CompanionExecsTest() {
    engine().add_image("db");
    v1::CreateSpec spec;
    const bool is_valid = google::protobuf::TextFormat::ParseFromString(
        "image: 'busybox' required_services { name: 'db' image: 'db' "
        "  envs { key: 'HOME' value: '/var/lib/db' } } "
        "companion_containers { name: 'web' image: 'db' }",
        &spec);
    AGBOX_CHECK(is_valid, "a spec of a test");
    create_ready(kWith, parse_create_spec(std::move(spec)).value());
    run_until([&] { return status("web").state() == v1::COMPANION_STATE_READY; });
  }

  static constexpr const char* kWith = "with-1";
  static std::string name_of(const std::string& companion) {
    return "agbox-cc-" + std::string(kWith) + "-" + companion;
  }
  static v1::CreateExecRequest in(const std::string& companion, const std::string& exec_id) {
    return request(exec_id, [&](auto& wanted) { wanted.set_container(companion); }, kWith);
  }
  GivenExec* given_in(const std::string& companion, const std::string& exec_id) {
    return guests_.exec(name_of(companion), exec_id);
  }
  void begin_in(const std::string& companion, const std::string& exec_id) {
    const auto created = create_exec(in(companion, exec_id));
    ASSERT_TRUE(created.has_value()) << created.error().message();
    run_until([&] { return given_in(companion, exec_id) != nullptr; });
  }
  v1::CompanionStatus status(const std::string& name) {
    const v1::SandboxHandle shown = handle(kWith);
    for (const v1::CompanionStatus& one : shown.companions()) {
      if (one.name() == name) return one;
    }
    return {};
  }
  void end_companion(const std::string& name) {
    engine().end_container(*engine().find_container(name_of(name)), 1);
  }
  int guests_started() {
    int started = 0;
    for (const auto& [id, exec] : engine().execs) {
      if (exec.has_run && exec.command.front() == "/.agbox-guest") ++started;
    }
    return started;
  }
};

TEST_F(CompanionExecsTest, TheFirstStartsAGuestInItThatTheNextOneHas) {
  EXPECT_EQ(guests_started(), 0);
  begin_in("db", "one-1");
  begin_in("db", "two-1");
  EXPECT_EQ(guests_started(), 1);
  const guest::v1::StartExec& order = given_in("db", "one-1")->order;
  EXPECT_EQ(order.working_directory(), "") << "that of the image";
  EXPECT_THAT(order.environment(), ElementsAre("HOME=/var/lib/db"));
  EXPECT_EQ(exec("one-1").container(), "db");
  guests_.end_exec(name_of("db"), "one-1", 0);
  guests_.end_exec(name_of("db"), "two-1", 3);
  wait_for_end("one-1");
  wait_for_end("two-1");
  EXPECT_EQ(exec("one-1").state(), v1::EXEC_STATE_FINISHED);
  EXPECT_EQ(exec("two-1").exit_code(), 3);
}

TEST_F(CompanionExecsTest, PrimaryIsTheOtherNameOfThePrimary) {
  ASSERT_TRUE(create_exec(in("primary", "one-1")));
  wait_given("one-1", kWith);
  EXPECT_EQ(exec("one-1").container(), "");
}

TEST_F(CompanionExecsTest, AnUnknownContainerIsRefusedWithThoseThatExist) {
  const auto refused = create_exec(in("cache", "one-1"));
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), HasSubstr("primary, db, web"));
  EXPECT_FALSE(get_exec("one-1").has_value());
}

TEST_F(CompanionExecsTest, ACancelEndsIt) {
  begin_in("db", "one-1");
  ASSERT_TRUE(cancel_exec("one-1"));
  wait_for_end("one-1");
  EXPECT_EQ(exec("one-1").state(), v1::EXEC_STATE_CANCELLED);
}

TEST_F(CompanionExecsTest, ItGoesOnOverARestartOfTheDaemon) {
  begin_in("db", "one-1");
  restart();
  run_until([&] { return guests_.is_connected(name_of("db")); });
  guests_.end_exec(name_of("db"), "one-1", 7);
  wait_for_end("one-1");
  EXPECT_EQ(exec("one-1").exit_code(), 7);
  EXPECT_EQ(times_begun("one-1"), 1);
  EXPECT_EQ(guests_started(), 1);
}

TEST_F(CompanionExecsTest, OneThatWasAcceptedBeforeACrashRunsOnce) {
  for (const char* failpoint :
       {"companion.guest_adopt.before", "companion.guest.before", "companion.guest.after",
        "companion.guest_start.after", "companion.guest_hello.after", "companion.guest_go.after",
        "companion.guest_commit.before", "companion.guest_commit.after"}) {
    const std::string exec_id = "after-" + std::to_string(guests_.begun().size());
    end_companion("db");
    run_until([&] { return status("db").state() == v1::COMPANION_STATE_FAILED; });
    run_until([&] { return status("db").state() == v1::COMPANION_STATE_READY; });
    ASSERT_TRUE(failpoint::arm(std::string(failpoint) + "=hold"));
    std::optional<Result<v1::CreateExecResponse>> reply;
    directory().create_exec(kWith, parse_exec_request(in("db", exec_id)),
                            [&](auto result) { reply = std::move(result); });
    wait_held_at(failpoint);
    crash();
    disarm();
    start();
    wait_for_engine();
    run_until([&] {
      return exec(exec_id).state() != v1::EXEC_STATE_RUNNING || given_in("db", exec_id) != nullptr;
    });
    ASSERT_EQ(exec(exec_id).state(), v1::EXEC_STATE_RUNNING) << exec(exec_id).error();
    guests_.end_exec(name_of("db"), exec_id, 0);
    wait_for_end(exec_id);
    EXPECT_EQ(times_begun(exec_id), 1) << failpoint;
  }
}

TEST_F(CompanionExecsTest, ItEndsWithItsContainerAndTheNextOneRunsInTheNextStart) {
  begin_in("db", "one-1");
  begin_exec("primary-1", {}, kWith);
  end_companion("db");
  wait_for_end("one-1");
  EXPECT_EQ(exec("one-1").state(), v1::EXEC_STATE_FAILED);
  EXPECT_EQ(exec("one-1").error_code(), "CONTAINER_EXITED");
  EXPECT_EQ(exec("primary-1").state(), v1::EXEC_STATE_RUNNING);
  run_until([&] {
    return status("db").restart_count() == 1 && status("db").state() == v1::COMPANION_STATE_READY;
  });
  begin_in("db", "two-1");
  EXPECT_EQ(guests_started(), 2) << "that of the former start is gone with it";
}

TEST_F(CompanionExecsTest, OneThatCameWhileALostGuestWasWaitedForIsNotForgotten) {
  begin_in("db", "one-1");
  guests_.script.connects = false;
  guests_.cut(name_of("db"));
  run_until([&] { return !guests_.is_connected(name_of("db")); });
  ASSERT_TRUE(create_exec(in("db", "two-1")));
  guests_.script.connects = true;
  end_companion("db");
  wait_for_end("one-1");
  run_until([&] {
    return exec("two-1").state() != v1::EXEC_STATE_RUNNING || given_in("db", "two-1") != nullptr;
  });
}

TEST_F(CompanionExecsTest, TheEndOfThePrimaryIsNotTheirs) {
  begin_in("db", "one-1");
  end_container(1, false, kWith);
  run_until([&] { return restarts().next().has_value(); });
  EXPECT_EQ(exec("one-1").state(), v1::EXEC_STATE_RUNNING);
  guests_.end_exec(name_of("db"), "one-1", 0);
  wait_for_end("one-1");
  EXPECT_EQ(exec("one-1").state(), v1::EXEC_STATE_FINISHED);
}

// A hostile companion may say what it likes about its own execs.
TEST_F(CompanionExecsTest, AGuestReportsNothingOfOtherContainers) {
  begin_in("db", "one-1");
  begin_exec("primary-1", {}, kWith);
  begin_in("web", "web-1");
  guests_.cut(name_of("db"));
  guests_.claim(name_of("db"), {"primary-1", "web-1"});
  run_until([&] { return guests_.is_connected(name_of("db")); });
  guest::v1::ToDaemon lie;
  lie.mutable_exec_ended()->set_how(guest::v1::ExecEnded::HOW_EXITED);
  for (const char* exec_id : {"primary-1", "web-1"}) {
    lie.mutable_exec_ended()->set_exec_id(exec_id);
    guests_.say(name_of("db"), lie);
  }
  guests_.end_exec(name_of("db"), "one-1", 0);
  wait_for_end("one-1");
  EXPECT_EQ(exec("primary-1").state(), v1::EXEC_STATE_RUNNING);
  EXPECT_EQ(exec("web-1").state(), v1::EXEC_STATE_RUNNING);
}

TEST_F(CompanionExecsTest, OneWhoseContainerDoesNotRunFailsWithTheReason) {
  docker().hang("POST /containers/" + name_of("web") + "/start");
  end_companion("web");
  run_until([&] { return status("web").state() == v1::COMPANION_STATE_FAILED; });
  ASSERT_TRUE(create_exec(in("web", "one-1")));
  wait_for_end("one-1");
  EXPECT_EQ(exec("one-1").state(), v1::EXEC_STATE_FAILED);
  EXPECT_THAT(exec("one-1").error(), HasSubstr("\"web\" does not run"));
  EXPECT_THAT(errors_of("one-1"), HasSubstr("does not run"));
}

// Then nothing would tell it from another process that connects.
TEST_F(CompanionExecsTest, OneWhoseGuestHasEndedAtOnceFails) {
  docker().reply("GET /exec/" + name_of("web") + "/json", 200,
                 R"({"ID": "1", "Running": false, "ExitCode": 137, "Pid": 0})");
  ASSERT_TRUE(create_exec(in("web", "one-1")));
  wait_for_end("one-1");
  EXPECT_EQ(exec("one-1").state(), v1::EXEC_STATE_FAILED);
  EXPECT_THAT(exec("one-1").error(), HasSubstr("has ended at once"));
}

TEST_F(CompanionExecsTest, AGuestThatCannotBePreparedFailsTheExec) {
  guests_.script.preparation_failure = "user 'nobody-here' is unknown";
  ASSERT_TRUE(create_exec(in("web", "one-1")));
  wait_for_end("one-1");
  EXPECT_THAT(exec("one-1").error(), HasSubstr("nobody-here"));
  guests_.script.preparation_failure.clear();
  begin_in("web", "two-1");
}

TEST_F(CompanionExecsTest, AStopCancelsThemAndAResumedSandboxRunsTheNext) {
  begin_in("db", "one-1");
  stop_sandbox(kWith);
  EXPECT_EQ(exec("one-1").state(), v1::EXEC_STATE_CANCELLED);
  resume_sandbox(kWith);
  begin_in("db", "two-1");
  EXPECT_EQ(times_begun("two-1"), 1);
}

TEST_F(CompanionExecsTest, ADeleteLeavesNothing) {
  begin_in("db", "one-1");
  for (const char* id : {kWith, kBox}) {
    ASSERT_TRUE(remove(id));
    wait_for_state(id, v1::SANDBOX_STATE_DELETED);
  }
  EXPECT_EQ(exec("one-1").state(), v1::EXEC_STATE_CANCELLED);
  expect_nothing_left();
}

TEST_F(CompanionExecsTest, InputAndTerminalsGoToTheirGuest) {
  ASSERT_TRUE(create_exec(request(
      "one-1",
      [](auto& wanted) {
        wanted.set_container("db");
        wanted.mutable_terminal();
      },
      kWith)));
  run_until([&] { return given_in("db", "one-1") != nullptr; });
  ASSERT_TRUE(directory().resize_exec_terminal("one-1", {.rows = 50, .columns = 100}));
  ASSERT_TRUE(directory().signal_exec("one-1", 15));
  run_until([&] { return given_in("db", "one-1")->orders.size() == 2; });
}

}  // namespace
}  // namespace agbox
