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
  companion.mutable_companion_container()->set_error_message("killed\n\x1b[2J");
  auto restarted = event(5, v1::SANDBOX_SERVICE_READY, v1::SANDBOX_STATE_READY);
  restarted.mutable_companion_container()->set_name("db");
  auto stopped = event(6, v1::SANDBOX_STOPPED, v1::SANDBOX_STATE_STOPPED);
  stopped.mutable_sandbox_phase()->set_reason("idle_ttl");
  daemon.events = {failed, exec, started, companion, restarted, stopped};
  daemon.sandbox.set_last_event_sequence(6);
  EXPECT_EQ(run({"events", "box-1"}), 0);
  EXPECT_THAT(out_, HasSubstr("Failed    SANDBOX_CREATE_FAILED: no luck\\x1b[2J\n"));
  EXPECT_THAT(out_, HasSubstr("Ready     exec=exec-1 exit_code=3 exit code 3\n"));
  EXPECT_THAT(out_, HasSubstr("Ready     exec=exec-2\n"));
  EXPECT_THAT(out_, HasSubstr("COMPANION_CONTAINER_FAILED  Ready     name=db CONTAINER_OOM: killed "
                              "\\x1b[2J\n"));
  EXPECT_THAT(out_, HasSubstr("COMPANION_CONTAINER_READY   Ready     name=db\n"));
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
  EXPECT_EQ(error_, "events requires <sandbox_id> or --all\n");
  EXPECT_EQ(run({"events", "a", "b"}), 2);
  EXPECT_THAT(error_, StartsWith("Error: accepts at most 1 arg(s), received 2\n"));
}

class AllEvents : public Commands {
 protected:
  static v1::SubscribeEventsResponse message(const std::string& cursor,
                                             std::optional<v1::SandboxEvent> of = {}) {
    v1::SubscribeEventsResponse out;
    out.set_cursor(cursor);
    if (of) *out.mutable_event() = *of;
    return out;
  }
  static void prepare(test::ScriptedDaemon& daemon) {
    auto other = event(2, v1::SANDBOX_STOPPED, v1::SANDBOX_STATE_STOPPED);
    other.set_sandbox_id("0f5a1dd4-8b9c-4fb4-9b60-3d0c5a3c2b11");
    daemon.all_events = {message("c-1", event(1, v1::SANDBOX_ACCEPTED, v1::SANDBOX_STATE_PENDING)),
                         message("c-2"), message("c-3", other), message("c-3"),
                         message("c-4", event(3, v1::SANDBOX_DELETED, v1::SANDBOX_STATE_DELETED))};
    daemon.all_events[3].set_caught_up(true);
    daemon.keep_streams_open = true;
  }
};

TEST_F(AllEvents, OneLineEachWithTheSandboxUpToTheNewest) {
  test::ScriptedDaemon daemon(socket(), prepare);
  EXPECT_EQ(run({"events", "--all"}), 0);
  EXPECT_EQ(out_,
            "box-1                                    1  2023-11-14T22:13:21.000Z  "
            "SANDBOX_ACCEPTED            Pending\n"
            "0f5a1dd4-8b9c-4fb4-9b60-3d0c5a3c2b11     2  2023-11-14T22:13:22.123Z  "
            "SANDBOX_STOPPED             Stopped\n");
  EXPECT_EQ(error_, "");
  EXPECT_EQ(daemon.calls().back(), "SubscribeEvents start: EVENTS_START_OLDEST");
}

TEST_F(AllEvents, AsJsonEveryMessageWithItsCursor) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.all_events[3].set_events_missing(true);
  EXPECT_EQ(run({"events", "--all", "--json", "--since-cursor", "c-2"}), 0);
  EXPECT_THAT(out_, StartsWith(R"({"cursor": "c-3", "event": {"event_id": "box-1-2", )"));
  EXPECT_THAT(out_, testing::EndsWith("}, \"caught_up\": false, \"events_missing\": false}\n"
                                      R"({"cursor": "c-3", "event": null, "caught_up": true, )"
                                      "\"events_missing\": true}\n"));
  EXPECT_EQ(error_, "");
  EXPECT_EQ(daemon.calls().back(), "SubscribeEvents cursor: \"c-2\"");
}

TEST_F(AllEvents, FollowingGoesOnAndEndsWithCtrlC) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.all_events[4].set_events_missing(true);
  const auto person = interrupt_at(daemon, "SubscribeEvents");
  EXPECT_EQ(run({"events", "--all", "-f", "--since-cursor", "c-3"}), 130);
  EXPECT_EQ(daemon.calls().back(), "SubscribeEvents cursor: \"c-3\"");
}

TEST_F(AllEvents, MissingEventsAreAWarning) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.all_events[2].set_events_missing(true);
  EXPECT_EQ(run({"events", "--all"}), 0);
  EXPECT_EQ(error_, "warning: events are missing here: the daemon has purged their history\n");
}

TEST_F(AllEvents, FiltersAreTheDaemons) {
  test::ScriptedDaemon daemon(socket(), prepare);
  EXPECT_EQ(run({"events", "--all", "--label", "team=red", "--type", "SANDBOX_READY,EXEC_FAILED",
                 "--type", "SANDBOX_SERVICE_READY", "--since-cursor", "now"}),
            0);
  EXPECT_EQ(daemon.calls().back(),
            "SubscribeEvents label_selector { key: \"team\" value: \"red\" } event_types: "
            "SANDBOX_READY event_types: EXEC_FAILED event_types: COMPANION_CONTAINER_READY start: "
            "EVENTS_START_NOW");
}

TEST_F(AllEvents, UsageErrors) {
  test::ScriptedDaemon daemon(socket(), prepare);
  const auto refused = [&](std::vector<std::string> arguments) {
    EXPECT_EQ(run(std::move(arguments)), 2);
    return error_;
  };
  EXPECT_EQ(refused({"events", "box-1", "--all"}),
            "events <sandbox_id> and --all are mutually exclusive\n");
  EXPECT_EQ(refused({"events", "--all", "--from", "1"}),
            "--from counts the events of one sandbox; use --since-cursor\n");
  for (const std::string flag : {"--label=a=b", "--type=SANDBOX_READY", "--since-cursor=c-1"}) {
    EXPECT_EQ(refused({"events", "box-1", flag}),
              "--label, --type and --since-cursor require --all\n");
  }
  EXPECT_THAT(refused({"events", "--all", "--type", "SANDBOX_READY,"}),
              StartsWith("--type: \"\" is not an event type; use SANDBOX_ACCEPTED, "));
  EXPECT_THAT(refused({"events", "--all", "--type", "EVENT_TYPE_UNSPECIFIED"}),
              HasSubstr("is not an event type"));
  EXPECT_EQ(refused({"events", "--all", "--since-cursor", ""}),
            "--since-cursor must not be empty\n");
  EXPECT_THAT(refused({"events", "--all", "--label", "team"}), HasSubstr("key=value"));
  EXPECT_TRUE(daemon.calls().empty());
}

TEST_F(AllEvents, ARefusedCursorIsAnError) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.all_events.clear();
  daemon.keep_streams_open = false;
  daemon.stream_status = grpc::Status(grpc::OUT_OF_RANGE, "cursor \"c\" is of another store");
  EXPECT_EQ(run({"events", "--all", "--since-cursor", "c"}), 1);
  EXPECT_EQ(error_, "subscribe events: cursor \"c\" is of another store\n");
}

}  // namespace
}  // namespace agbox::cli
