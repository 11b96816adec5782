// SPDX-License-Identifier: Apache-2.0
// Execs from the request to their end, as clients and the guest see them.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "model/reasons.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ExecLifecycleTest : public ExecTest {};

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(ExecLifecycleTest, RunsAndItsOutputIsInTheFilesThatItNames) {
  const auto created = create_exec("one-1");
  ASSERT_TRUE(created.has_value()) << created.error().message();
  EXPECT_EQ(created->exec_id(), "one-1");
  const std::string temp_directory =
      std::filesystem::canonical(temp_directory_.path() / "execs") / kBox;
  EXPECT_EQ(created->stdout_log_path(), temp_directory + "/one-1.stdout.log");
  EXPECT_EQ(created->stderr_log_path(), temp_directory + "/one-1.stderr.log");
  wait_given("one-1");
  ASSERT_EQ(::write(given("one-1")->out.get(), "out", 3), 3);
  ASSERT_EQ(::write(given("one-1")->err.get(), "err", 3), 3);
  EXPECT_EQ(exec("one-1").state(), v1::EXEC_STATE_RUNNING);
  end_exec("one-1", 0);
  wait_for_end("one-1");
  EXPECT_EQ(exec("one-1").state(), v1::EXEC_STATE_FINISHED);
  EXPECT_EQ(read_file(created->stdout_log_path()), "out");
  EXPECT_EQ(read_file(created->stderr_log_path()), "err");
  wait_forgotten("one-1");
  EXPECT_THAT(exec_events(), ElementsAre("EXEC_STARTED one-1", "EXEC_FINISHED one-1"));
}

// S10
TEST_F(ExecLifecycleTest, TheFilesAreForTheDaemonsUserAlone) {
  const auto created = create_exec("mode-1").value();
  struct stat found{};
  ASSERT_EQ(::stat(created.stdout_log_path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600U);
  EXPECT_EQ(found.st_size, 0);
  wait_given("mode-1");
  // Whatever the guest does with its descriptor, it can only append.
  EXPECT_NE(::fcntl(given("mode-1")->out.get(), F_GETFL) & O_APPEND, 0);
  EXPECT_EQ(::fcntl(given("mode-1")->out.get(), F_GETFL) & O_ACCMODE, O_WRONLY);
}

TEST_F(ExecLifecycleTest, TheGuestGetsTheWholeOrder) {
  auto wanted = spec();
  (*wanted.create_spec.mutable_envs())["HOME"] = "/elsewhere";
  (*wanted.create_spec.mutable_envs())["OTHER"] = "is the container's already";
  create_ready("box-2", wanted);
  begin_exec(
      "order-1",
      [](auto& r) {
        r.clear_command();
        for (const char* word : {"printf", "%s", ""}) r.add_command(word);
        r.set_cwd("/tmp");
        (*r.mutable_env_overrides())["B"] = "two";
        (*r.mutable_env_overrides())["A"] = "one=1";
      },
      "box-2");
  const auto& order = given("order-1", "box-2")->order;
  EXPECT_THAT(order.command(), ElementsAre("printf", "%s", ""));
  EXPECT_EQ(order.working_directory(), "/tmp");
  EXPECT_THAT(order.environment(), ElementsAre("HOME=/elsewhere", "A=one=1", "B=two"));
  EXPECT_EQ(order.output_limit_bytes(), exec_output_max_);
  EXPECT_GT(order.free_space_reserve_bytes(), 0U);
  EXPECT_LE(order.free_space_reserve_bytes(), std::uint64_t{256} << 20);
}

TEST_F(ExecLifecycleTest, WithoutADirectoryItRunsInTheWorkspace) {
  begin_exec("cwd-1");
  EXPECT_EQ(given("cwd-1")->order.working_directory(), "/workspace");
  EXPECT_THAT(given("cwd-1")->order.environment(), IsEmpty());
  EXPECT_EQ(exec("cwd-1").cwd(), "");
}

TEST_F(ExecLifecycleTest, AnIdIsMadeUpWhereNoneIsGiven) {
  const auto created = create_exec("").value();
  EXPECT_EQ(created.exec_id().size(), 36U);
  EXPECT_EQ(exec(created.exec_id()).state(), v1::EXEC_STATE_RUNNING);
}

// contract: exactly these fields, and the sandbox's state on every event.
TEST_F(ExecLifecycleTest, EventsCarryWhatClientsRelyOn) {
  clock_.advance(5s);
  begin_exec("event-1");
  end_exec("event-1", 3);
  wait_for_end("event-1");
  const auto seen = events(kBox, 3);
  ASSERT_EQ(seen.size(), 2U);
  const v1::SandboxEvent& started = seen[0].event;
  EXPECT_EQ(started.event_id(), "box-1-4");
  EXPECT_EQ(started.sandbox_state(), v1::SANDBOX_STATE_READY);
  EXPECT_EQ(started.exec().exec_state(), v1::EXEC_STATE_RUNNING);
  EXPECT_EQ(started.occurred_at().seconds(), 1'700'000'005);
  const v1::SandboxEvent& ended = seen[1].event;
  EXPECT_EQ(ended.event_type(), v1::EXEC_FAILED);
  EXPECT_EQ(ended.sandbox_state(), v1::SANDBOX_STATE_READY);
  EXPECT_EQ(ended.exec().exec_state(), v1::EXEC_STATE_FAILED);
  EXPECT_EQ(ended.exec().exit_code(), 3);
  EXPECT_EQ(ended.exec().error_code(), "EXEC_RUN_FAILED");
  EXPECT_EQ(ended.exec().error_message(), "exit code 3");
  EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
}

TEST_F(ExecLifecycleTest, TheStatusTellsEverythingOfAnEndedExec) {
  begin_exec("status-1", [](auto& r) {
    r.set_cwd("/tmp");
    (*r.mutable_env_overrides())["A"] = "b";
  });
  clock_.advance(7s);
  guest::v1::ExecEnded end;
  end.set_how(guest::v1::ExecEnded::HOW_SIGNALED);
  end.set_code(9);
  end.set_output_truncated(true);
  end.set_user_cpu_microseconds(1'500'000);
  end.set_system_cpu_microseconds(250);
  end.set_peak_memory_bytes(4096);
  guests_.end_exec(container(), "status-1", end);
  wait_for_end("status-1");
  const v1::ExecStatus status = exec("status-1");
  EXPECT_EQ(status.sandbox_id(), kBox);
  EXPECT_EQ(status.state(), v1::EXEC_STATE_FAILED);
  EXPECT_THAT(status.command(), ElementsAre("true"));
  EXPECT_EQ(status.cwd(), "/tmp");
  EXPECT_EQ(status.env_overrides().at("A"), "b");
  EXPECT_EQ(status.exit_code(), 137);
  EXPECT_EQ(status.error(), "killed by signal 9");
  EXPECT_EQ(status.error_code(), "EXEC_RUN_FAILED");
  EXPECT_EQ(status.last_event_sequence(), 5U);
  EXPECT_EQ(status.started_at().seconds(), 1'700'000'000);
  EXPECT_EQ(status.ended_at().seconds(), 1'700'000'007);
  EXPECT_TRUE(status.output_truncated());
  EXPECT_EQ(status.usage().user_cpu().seconds(), 1);
  EXPECT_EQ(status.usage().user_cpu().nanos(), 500'000'000);
  EXPECT_EQ(status.usage().system_cpu().nanos(), 250'000);
  EXPECT_EQ(status.usage().peak_memory_bytes(), 4096U);
}

TEST_F(ExecLifecycleTest, TruncatedOutputIsToldWhileItStillRuns) {
  begin_exec("large-1");
  EXPECT_FALSE(exec("large-1").output_truncated());
  guests_.truncate_exec(container(), "large-1");
  run_until([&] { return exec("large-1").output_truncated(); });
  EXPECT_EQ(exec("large-1").state(), v1::EXEC_STATE_RUNNING);
  restart();
  EXPECT_TRUE(exec("large-1").output_truncated());
  end_exec("large-1", 0);
  wait_for_end("large-1");
  EXPECT_TRUE(exec("large-1").output_truncated());
}

// P1, P5: two commits, and nothing else.
TEST_F(ExecLifecycleTest, AnExecNeedsNeitherTheEngineNorAPoll) {
  run_until([&] { return docker().event_streams() == 1; });
  docker().forget_calls();
  begin_exec("frugal-1");
  settle();
  run_until_idle();
  EXPECT_EQ(loop_.io().run_for(60ms), 0U);
  end_exec("frugal-1", 0);
  wait_for_end("frugal-1");
  EXPECT_THAT(docker().call_log(), IsEmpty());
}

// The event is shown together with the state that it announces, whoever asks at that moment.
TEST_F(ExecLifecycleTest, WhoeverSeesTheEventSeesTheState) {
  begin_exec("atomic-1");
  v1::SubscribeSandboxEventsRequest request;
  request.set_sandbox_id(kBox);
  request.set_from_sequence(exec("atomic-1").last_event_sequence());
  std::optional<v1::ExecStatus> seen;
  bool has_asked = false;
  const auto subscription = directory()
                                .subscribe(request,
                                           [&] {
                                             if (std::exchange(has_asked, true)) return;
                                             EXPECT_EQ(handle(kBox).last_event_sequence(), 5U);
                                             EXPECT_THAT(active(), IsEmpty());
                                             directory().get_exec("atomic-1", [&](auto status) {
                                               seen = std::move(*status);
                                             });
                                           })
                                .value();
  end_exec("atomic-1", 0);
  run_until([&] { return seen.has_value(); });
  EXPECT_EQ(seen->state(), v1::EXEC_STATE_FINISHED);
  EXPECT_EQ(seen->last_event_sequence(), 5U);
}

TEST_F(ExecLifecycleTest, ASnapshotShowsWhatRuns) {
  begin_exec("snap-b");
  begin_exec("snap-a");
  begin_exec("snap-c");
  end_exec("snap-c", 0);
  wait_for_end("snap-c");
  const auto newest = handle(kBox).last_event_sequence();
  v1::SubscribeSandboxEventsRequest request;
  request.set_sandbox_id(kBox);
  request.set_from_sequence(newest);
  request.set_include_current_snapshot(true);
  const auto subscription = directory().subscribe(request, [] {}).value();
  std::vector<EventSubscription::Item> items;
  run_until([&] {
    while (true) {
      auto next = subscription->next();
      const auto* item = std::get_if<EventSubscription::Item>(&next);
      if (item == nullptr) return items.size() >= 3;
      items.push_back(*item);
    }
  });
  ASSERT_EQ(items.size(), 3U);
  EXPECT_EQ(items[0].event->event.event_type(), v1::EXEC_FINISHED);
  const std::string ids[] = {"", "snap-a", "snap-b"};
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_TRUE(items[i].is_snapshot && items[i].is_replay);
    v1::SandboxEvent event;
    ASSERT_TRUE(event.ParseFromString(items[i].event->bytes));
    EXPECT_EQ(event.event_id(), "box-1-snapshot-" + ids[i]);
    EXPECT_EQ(event.event_type(), v1::EXEC_STARTED);
    EXPECT_EQ(event.sequence(), newest);
    EXPECT_EQ(event.sandbox_id(), kBox);
    EXPECT_EQ(event.sandbox_state(), v1::SANDBOX_STATE_READY);
    EXPECT_EQ(event.exec().exec_id(), ids[i]);
    EXPECT_EQ(event.exec().exec_state(), v1::EXEC_STATE_RUNNING);
    EXPECT_TRUE(event.has_occurred_at());
  }
}

// L27: the template decides where the files are.
TEST_F(ExecLifecycleTest, TheTemplateDecidesWhereTheFilesAre) {
  stop();
  exec_output_template_ = "{sandbox_id}/runs/{exec_id}/{exec_id}-of-{sandbox_id}";
  start();
  create_ready("box-3");
  const auto created = create_exec(request("deep-1", {}, "box-3")).value();
  EXPECT_THAT(created.stdout_log_path(),
              HasSubstr("/execs/box-3/runs/deep-1/deep-1-of-box-3.stdout.log"));
  EXPECT_TRUE(std::filesystem::exists(created.stdout_log_path()));
  EXPECT_TRUE(std::filesystem::exists(created.stderr_log_path()));
  // A sandbox keeps what it was created with.
  EXPECT_THAT(create_exec("flat-1")->stdout_log_path(), HasSubstr("/box-1/flat-1.stdout.log"));
}

// L26
TEST_F(ExecLifecycleTest, WhatExecsWroteGoesWithTheHistory) {
  stop();
  ttls_.history = 1h;
  start();
  begin_exec("history-1");
  const std::filesystem::path temp_directory = temp_directory_.path() / "execs" / kBox;
  for (int i = 0; i < 200; ++i)
    std::ofstream(temp_directory / std::to_string(i)) << "more than one turn";
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
  clock_.advance(59min);
  directory().deadlines().call_due();
  settle();
  EXPECT_TRUE(std::filesystem::exists(exec("history-1").stdout_log_path()));
  clock_.advance(2min);
  directory().deadlines().call_due();
  run_until([&] { return !directory().get(kBox).has_value(); });
  EXPECT_FALSE(std::filesystem::exists(temp_directory));
  EXPECT_EQ(get_exec("history-1").error().reason(), reason::kExecNotFound);
  create_ready("box-2");
  EXPECT_EQ(create_exec(request("history-1", {}, "box-2")).error().reason(),
            reason::kExecIdAlreadyExists);
}

TEST_F(ExecLifecycleTest, WhereOutputLiesAndWhenItEnds) {
  std::optional<Result<ExecOutputSource>> found;
  int told = 0;
  const auto find = [&](const std::string& exec_id) {
    found.reset();
    directory().find_exec_output(exec_id, [&] { ++told; }, [&](auto r) { found = std::move(r); });
    run_until([&] { return found.has_value(); });
  };
  begin_exec("read-1");
  find("read-1");
  ASSERT_TRUE(found->has_value());
  EXPECT_FALSE((*found)->is_terminal);
  EXPECT_EQ((*found)->stdout_path, exec("read-1").stdout_log_path());
  EXPECT_EQ((*found)->stderr_path, exec("read-1").stderr_log_path());
  EXPECT_EQ((*found)->root, std::filesystem::canonical(temp_directory_.path() / "execs"));
  const auto kept = (*found)->on_end;
  find("read-1");  // a second reader, which goes away
  found.reset();
  end_exec("read-1", 0);
  wait_for_end("read-1");
  EXPECT_EQ(told, 1);
  find("read-1");
  EXPECT_TRUE((*found)->is_terminal);
  EXPECT_EQ((*found)->on_end, nullptr);
  find("nobody-1");
  EXPECT_EQ(found->error().reason(), reason::kExecNotFound);
}

}  // namespace
}  // namespace agbox
