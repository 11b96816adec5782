// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "unit/cli/commands_fixture.h"

namespace agbox::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

v1::SandboxEvent event(std::uint64_t sequence, v1::EventType type, v1::SandboxState state) {
  v1::SandboxEvent out;
  out.set_event_id("box-1-" + std::to_string(sequence));
  out.set_sequence(sequence);
  out.set_sandbox_id("box-1");
  out.set_event_type(type);
  out.set_sandbox_state(state);
  out.mutable_occurred_at()->set_seconds(1'700'000'000 + static_cast<std::int64_t>(sequence));
  out.mutable_occurred_at()->set_nanos(sequence == 1 ? 0 : 123'999'999);
  return out;
}

class Events : public Commands {
 protected:
  static void prepare(test::ScriptedDaemon& daemon) {
    daemon.sandbox.set_sandbox_id("box-1");
    daemon.sandbox.set_state(v1::SANDBOX_STATE_READY);
    daemon.sandbox.set_last_event_sequence(3);
    auto preparing = event(2, v1::SANDBOX_PREPARING, v1::SANDBOX_STATE_PENDING);
    preparing.mutable_sandbox_phase()->set_phase("materialize");
    daemon.events = {event(1, v1::SANDBOX_ACCEPTED, v1::SANDBOX_STATE_PENDING), preparing,
                     event(3, v1::SANDBOX_READY, v1::SANDBOX_STATE_READY)};
    daemon.keep_streams_open = true;
  }
};

TEST_F(Events, OneLineEachUpToTheNewestAtTheTimeOfTheCall) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.events.push_back(event(4, v1::SANDBOX_STOPPED, v1::SANDBOX_STATE_STOPPED));
  EXPECT_EQ(run({"events", "box-1"}), 0);
  EXPECT_EQ(out_,
            "   1  2023-11-14T22:13:21.000Z  SANDBOX_ACCEPTED            Pending\n"
            "   2  2023-11-14T22:13:22.123Z  SANDBOX_PREPARING           Pending   materialize\n"
            "   3  2023-11-14T22:13:23.123Z  SANDBOX_READY               Ready\n");
  EXPECT_EQ(error_, "");
  EXPECT_EQ(daemon.calls().back(), "SubscribeSandboxEvents sandbox_id: \"box-1\"");
}

TEST_F(Events, FromANumber) {
  test::ScriptedDaemon daemon(socket(), prepare);
  EXPECT_EQ(run({"events", "box-1", "--from", "2"}), 0);
  EXPECT_THAT(out_, StartsWith("   3  "));
  EXPECT_EQ(run({"events", "box-1", "--from=3"}), 0);
  EXPECT_EQ(out_, "");
  for (const std::string wrong : {"-1", "2x", "", "18446744073709551616"}) {
    EXPECT_EQ(run({"events", "box-1", "--from", wrong}), 2);
    EXPECT_EQ(error_, "--from: \"" + wrong + "\" is not an event sequence number\n");
  }
}

TEST_F(Events, ANumberBeyondTheNewestIsTheDaemonsToRefuse) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.keep_streams_open = false;
  daemon.stream_status = grpc::Status(grpc::OUT_OF_RANGE,
                                      "sandbox box-1 event sequence 9 is outside retained history");
  EXPECT_EQ(run({"events", "box-1", "--from", "9"}), 1);
  EXPECT_EQ(error_,
            "subscribe sandbox events: sandbox box-1 event sequence 9 is outside retained "
            "history\n");
}

TEST_F(Events, DetailsOfEveryKind) {
  test::ScriptedDaemon daemon(socket(), prepare);
  auto failed = event(1, v1::SANDBOX_FAILED, v1::SANDBOX_STATE_FAILED);
  failed.mutable_sandbox_phase()->set_error_code("SANDBOX_CREATE_FAILED");
  failed.mutable_sandbox_phase()->set_error_message("no\nluck\x1b[2J");
  auto exec = event(2, v1::EXEC_FAILED, v1::SANDBOX_STATE_READY);
  exec.mutable_exec()->set_exec_id("exec-1");
  exec.mutable_exec()->set_exit_code(3);
  exec.mutable_exec()->set_exec_state(v1::EXEC_STATE_FAILED);
  exec.mutable_exec()->set_error_message("exit code 3");
  auto started = event(3, v1::EXEC_STARTED, v1::SANDBOX_STATE_READY);
  started.mutable_exec()->set_exec_id("exec-2");
  started.mutable_exec()->set_exec_state(v1::EXEC_STATE_RUNNING);
  auto companion = event(4, v1::COMPANION_CONTAINER_FAILED, v1::SANDBOX_STATE_READY);
  companion.mutable_companion_container()->set_name("db");
  companion.mutable_companion_container()->set_error_code("CONTAINER_OOM");
  auto stopped = event(5, v1::SANDBOX_STOPPED, v1::SANDBOX_STATE_STOPPED);
  stopped.mutable_sandbox_phase()->set_reason("idle_ttl");
  daemon.events = {failed, exec, started, companion, stopped};
  daemon.sandbox.set_last_event_sequence(5);
  EXPECT_EQ(run({"events", "box-1"}), 0);
  EXPECT_THAT(out_, HasSubstr("Failed    SANDBOX_CREATE_FAILED: no luck\\x1b[2J\n"));
  EXPECT_THAT(out_, HasSubstr("Ready     exec=exec-1 exit_code=3 exit code 3\n"));
  EXPECT_THAT(out_, HasSubstr("Ready     exec=exec-2\n"));
  EXPECT_THAT(out_, HasSubstr("COMPANION_CONTAINER_FAILED  Ready     name=db CONTAINER_OOM\n"));
  EXPECT_THAT(out_, HasSubstr("Stopped   reason=idle_ttl\n"));
}

TEST_F(Events, AsJsonOneObjectPerLine) {
  test::ScriptedDaemon daemon(socket(), prepare);
  EXPECT_EQ(run({"events", "box-1", "--json", "--from", "1"}), 0);
  EXPECT_EQ(
      out_,
      R"({"event_id": "box-1-2", "sequence": "2", "sandbox_id": "box-1", )"
      R"("event_type": "SANDBOX_PREPARING", "occurred_at": "2023-11-14T22:13:22.123999999Z", )"
      R"("replay": false, "snapshot": false, "sandbox_state": "SANDBOX_STATE_PENDING", )"
      R"("sandbox_phase": {"phase": "materialize", "error_code": "", "error_message": "", )"
      R"("reason": ""}})"
      "\n"
      R"({"event_id": "box-1-3", "sequence": "3", "sandbox_id": "box-1", )"
      R"("event_type": "SANDBOX_READY", "occurred_at": "2023-11-14T22:13:23.123999999Z", )"
      R"("replay": false, "snapshot": false, "sandbox_state": "SANDBOX_STATE_READY"})"
      "\n");
}

TEST_F(Events, FollowingEndsWithTheSandbox) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.events.push_back(event(4, v1::SANDBOX_DELETED, v1::SANDBOX_STATE_DELETED));
  EXPECT_EQ(run({"events", "-f", "box-1", "--from", "3"}), 0);
  EXPECT_THAT(out_, HasSubstr("SANDBOX_DELETED             Deleted\n"));
}

TEST_F(Events, FollowingADeletedSandboxEndsAtOnce) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.sandbox.set_state(v1::SANDBOX_STATE_DELETED);
  EXPECT_EQ(run({"events", "--follow", "box-1", "--from", "3"}), 0);
  EXPECT_EQ(out_, "");
}

TEST_F(Events, FollowingEndsWithCtrlC) {
  test::ScriptedDaemon daemon(socket(), prepare);
  const auto person = interrupt_at(daemon, "SubscribeSandboxEvents");
  EXPECT_EQ(run({"events", "box-1", "--follow"}), 130);
  EXPECT_EQ(error_, "");
}

TEST_F(Events, AnUnknownSandboxIsNamed) {
  test::ScriptedDaemon daemon(socket());
  daemon.status = unknown("nope");
  EXPECT_EQ(run({"events", "nope"}), 1);
  EXPECT_EQ(error_, "get sandbox: Sandbox nope not found.\n");
  EXPECT_EQ(run({"events"}), 2);
  EXPECT_THAT(error_, StartsWith("Error: accepts 1 arg(s), received 0\n"));
}

}  // namespace
}  // namespace agbox::cli
