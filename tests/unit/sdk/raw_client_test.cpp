// SPDX-License-Identifier: Apache-2.0
// Calls, their errors and event streams, against a daemon that answers what the test says.
#include <agbox/all_events_follower.h>
#include <agbox/raw_client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "unit/sdk/raw_client_fixture.h"

namespace agbox::sdk {
namespace {

using namespace std::chrono_literals;
using test::ErrorInfoBytes;
using test::ScriptedDaemon;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST_F(RawClientTest, EveryCallReachesItsMethodWithItsRequest) {
  ScriptedDaemon daemon(socket());
  daemon.ping_response.set_version("1.2.3");
  daemon.sandbox.set_sandbox_id("box-1");
  daemon.exec.set_exec_id("exec-1");
  const RawClient raw = client();

  EXPECT_EQ(raw.ping()->version(), "1.2.3");
  v1::CreateSandboxRequest create;
  create.mutable_create_spec()->set_image("debian:12");
  EXPECT_EQ(raw.create_sandbox(create)->sandbox().sandbox_id(), "box-1");
  v1::GetSandboxRequest get;
  get.set_sandbox_id("g");
  EXPECT_EQ(raw.get_sandbox(get)->sandbox().sandbox_id(), "box-1");
  v1::ListSandboxesRequest list;
  list.set_include_deleted(true);
  EXPECT_EQ(raw.list_sandboxes(list)->sandboxes_size(), 1);
  v1::ResumeSandboxRequest resume;
  resume.set_sandbox_id("r");
  EXPECT_TRUE(raw.resume_sandbox(resume)->accepted());
  v1::StopSandboxRequest stop;
  stop.set_sandbox_id("s");
  EXPECT_TRUE(raw.stop_sandbox(stop)->accepted());
  v1::DeleteSandboxRequest remove;
  remove.set_sandbox_id("d");
  EXPECT_TRUE(raw.delete_sandbox(remove)->accepted());
  v1::DeleteSandboxesRequest remove_all;
  (*remove_all.mutable_label_selector())["k"] = "v";
  EXPECT_EQ(raw.delete_sandboxes(remove_all)->deleted_count(), 1u);
  v1::CreateExecRequest run;
  run.add_command("make");
  EXPECT_EQ(raw.create_exec(run)->exec_id(), "exec-1");
  v1::CancelExecRequest cancel;
  cancel.set_exec_id("c");
  EXPECT_TRUE(raw.cancel_exec(cancel)->accepted());
  v1::GetExecRequest get_exec;
  get_exec.set_exec_id("e");
  EXPECT_EQ(raw.get_exec(get_exec)->exec().exec_id(), "exec-1");
  EXPECT_EQ(raw.list_active_execs({})->execs_size(), 1);

  EXPECT_THAT(daemon.calls(),
              ElementsAre("Ping", "CreateSandbox create_spec { image: \"debian:12\" }",
                          "GetSandbox sandbox_id: \"g\"", "ListSandboxes include_deleted: true",
                          "ResumeSandbox sandbox_id: \"r\"", "StopSandbox sandbox_id: \"s\"",
                          "DeleteSandbox sandbox_id: \"d\"",
                          "DeleteSandboxes label_selector { key: \"k\" value: \"v\" }",
                          "CreateExec command: \"make\"", "CancelExec exec_id: \"c\"",
                          "GetExec exec_id: \"e\"", "ListActiveExecs"));
}

TEST_F(RawClientTest, KnownReasonsBecomeKindsWithTheWordsOfEveryClient) {
  struct Row {
    grpc::StatusCode code;
    const char* reason;
    const char* key;
    ErrorKind kind;
    const char* message;
  };
  const Row rows[] = {
      {grpc::NOT_FOUND, "SANDBOX_NOT_FOUND", "sandbox_id", ErrorKind::SandboxNotFound,
       "Sandbox x1 not found."},
      {grpc::FAILED_PRECONDITION, "SANDBOX_NOT_READY", "sandbox_id", ErrorKind::SandboxNotReady,
       "words of the daemon"},
      {grpc::NOT_FOUND, "EXEC_NOT_FOUND", "exec_id", ErrorKind::ExecNotFound, "Exec x1 not found."},
      {grpc::FAILED_PRECONDITION, "EXEC_ALREADY_TERMINAL", "exec_id",
       ErrorKind::ExecAlreadyTerminal, "Exec x1 is already terminal."},
      {grpc::ALREADY_EXISTS, "SANDBOX_ID_ALREADY_EXISTS", "sandbox_id", ErrorKind::SandboxConflict,
       "words of the daemon"},
      {grpc::ALREADY_EXISTS, "EXEC_ID_ALREADY_EXISTS", "exec_id", ErrorKind::SandboxConflict,
       "words of the daemon"},
      {grpc::ABORTED, "SANDBOX_CONFLICT", "sandbox_id", ErrorKind::SandboxConflict,
       "words of the daemon"},
      {grpc::FAILED_PRECONDITION, "SANDBOX_INVALID_STATE", "sandbox_id",
       ErrorKind::SandboxInvalidState, "words of the daemon"},
      {grpc::OUT_OF_RANGE, "SANDBOX_EVENT_SEQUENCE_EXPIRED", "sandbox_id",
       ErrorKind::SandboxSequenceExpired, "words of the daemon"},
      {grpc::FAILED_PRECONDITION, "EXEC_NOT_RUNNING", "exec_id", ErrorKind::ExecNotRunning,
       "words of the daemon"},
      {grpc::UNAVAILABLE, "ENGINE_UNAVAILABLE", "engine", ErrorKind::Refused,
       "words of the daemon"},
  };
  ScriptedDaemon daemon(socket());
  const RawClient raw = client();
  for (const Row& row : rows) {
    daemon.status = ErrorInfoBytes{.code = row.code,
                                   .message = "words of the daemon",
                                   .reason = row.reason,
                                   .metadata = {{row.key, "x1"}}}
                        .status();
    const auto answer = raw.ping();
    ASSERT_FALSE(answer.has_value()) << row.reason;
    const Error& error = answer.error();
    EXPECT_EQ(error.kind, row.kind) << row.reason;
    EXPECT_EQ(static_cast<int>(error.code), static_cast<int>(row.code)) << row.reason;
    EXPECT_EQ(error.reason, row.reason);
    EXPECT_EQ(error.message, row.message) << row.reason;
    EXPECT_THAT(error.metadata, ElementsAre(Pair(row.key, "x1")));
    EXPECT_EQ(error.sandbox_id(), std::string(row.key) == "sandbox_id" ? "x1" : "");
    EXPECT_EQ(error.exec_id(), std::string(row.key) == "exec_id" ? "x1" : "");
    EXPECT_FALSE(error.socket.has_value()) << row.reason;
  }
}

TEST_F(RawClientTest, WithoutTheIdTheDaemonsWordsStand) {
  const ErrorInfoBytes info{
      .code = grpc::NOT_FOUND, .message = "gone", .reason = "SANDBOX_NOT_FOUND"};
  const Error error = error_for(info.status());
  EXPECT_EQ(error.kind, ErrorKind::SandboxNotFound);
  EXPECT_EQ(error.message, "gone");
}

TEST_F(RawClientTest, DetailsOfAnotherDomainOrTypeOrStatusAreNotOurs) {
  const ErrorInfoBytes ours{.code = grpc::NOT_FOUND,
                            .message = "words",
                            .reason = "SANDBOX_NOT_FOUND",
                            .metadata = {{"sandbox_id", "x1"}}};
  ErrorInfoBytes foreign = ours;
  foreign.domain = "example.org";
  ErrorInfoBytes other_type = ours;
  other_type.type_url = "type.googleapis.com/google.rpc.RetryInfo";
  ErrorInfoBytes other_code = ours;
  other_code.code = grpc::INTERNAL;
  const std::string garbled = ours.wire().substr(0, ours.wire().size() - 3);
  for (const std::string& details :
       {foreign.wire(), other_type.wire(), other_code.wire(), garbled, std::string("\xFF\xFF")}) {
    const Error error = error_for(grpc::Status(grpc::NOT_FOUND, "words", details));
    EXPECT_EQ(error.kind, ErrorKind::Refused);
    EXPECT_EQ(error.code, StatusCode::NotFound);
    EXPECT_EQ(error.reason, "");
    EXPECT_EQ(error.message, "words");
  }
}

TEST_F(RawClientTest, ARefusalWithoutWordsStillSaysSomething) {
  EXPECT_EQ(error_for(grpc::Status(grpc::UNIMPLEMENTED, "")).message,
            "agboxd rejected the call with code 12");
}

TEST_F(RawClientTest, ProxyVariablesAreIgnored) {
  ScriptedDaemon daemon(socket());
  ASSERT_EQ(::setenv("http_proxy", "http://127.0.0.1:9", 1), 0);
  ASSERT_EQ(::setenv("grpc_proxy", "http://127.0.0.1:9", 1), 0);
  EXPECT_TRUE(client().ping().has_value());
  ::unsetenv("http_proxy");
  ::unsetenv("grpc_proxy");
}

TEST_F(RawClientTest, ASilentDaemonIsATimeout) {
  ScriptedDaemon daemon(socket());
  daemon.silent = true;
  const auto by_client = client(50ms).ping();
  ASSERT_FALSE(by_client.has_value());
  EXPECT_EQ(by_client.error().kind, ErrorKind::Timeout);
  EXPECT_EQ(by_client.error().code, StatusCode::DeadlineExceeded);
  EXPECT_EQ(by_client.error().message,
            "agboxd at " + socket().string() + " did not respond within 50 ms");

  const auto by_call = client(1h).ping({}, {.timeout = 30ms});
  ASSERT_FALSE(by_call.has_value());
  EXPECT_THAT(by_call.error().message, HasSubstr("within 30 ms"));
}

TEST_F(RawClientTest, ARestartedDaemonIsFoundAgain) {
  const RawClient raw = client();
  {
    ScriptedDaemon daemon(socket());
    ASSERT_TRUE(raw.ping().has_value());
  }
  ASSERT_FALSE(raw.ping().has_value());
  ScriptedDaemon again(socket());
  // Bounded by the longest back-off, half a second.
  const auto limit = std::chrono::steady_clock::now() + 10s;
  while (!raw.ping() && std::chrono::steady_clock::now() < limit) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(raw.ping().has_value());
}

v1::SandboxEvent numbered(std::uint64_t sequence) {
  v1::SandboxEvent event;
  event.set_sequence(sequence);
  return event;
}

TEST_F(RawClientTest, AStreamYieldsItsEventsThenItsEnd) {
  ScriptedDaemon daemon(socket());
  daemon.events = {numbered(7), numbered(8), numbered(9)};
  v1::SubscribeSandboxEventsRequest request;
  request.set_sandbox_id("box-1");
  request.set_from_sequence(7);
  EventStream stream = client().subscribe_sandbox_events(request);  // outlives its client

  for (const std::uint64_t sequence : {8u, 9u}) {
    const auto event = stream.next();
    ASSERT_TRUE(event.has_value() && event->has_value());
    EXPECT_EQ((*event)->sequence(), sequence);
  }
  for (int again = 0; again < 2; ++again) {
    const auto end = stream.next();
    ASSERT_TRUE(end.has_value());
    EXPECT_FALSE(end->has_value());
  }
  EXPECT_THAT(daemon.calls(),
              ElementsAre("SubscribeSandboxEvents sandbox_id: \"box-1\" from_sequence: 7"));
}

TEST_F(RawClientTest, AStreamEndsWithTheDaemonsTypedError) {
  ScriptedDaemon daemon(socket());
  daemon.events = {numbered(1)};
  daemon.status = ErrorInfoBytes{.code = grpc::OUT_OF_RANGE,
                                 .message = "too far",
                                 .reason = "SANDBOX_EVENT_SEQUENCE_EXPIRED",
                                 .metadata = {{"sandbox_id", "b"}, {"from_sequence", "9"}}}
                      .status();
  EventStream stream = client().subscribe_sandbox_events({});
  ASSERT_TRUE(stream.next().has_value());
  for (int again = 0; again < 2; ++again) {
    const auto end = stream.next();
    ASSERT_FALSE(end.has_value());
    EXPECT_EQ(end.error().kind, ErrorKind::SandboxSequenceExpired);
    EXPECT_EQ(end.error().metadata.at("from_sequence"), "9");
  }
}

TEST_F(RawClientTest, AStreamHasNoTimeoutUnlessAsked) {
  ScriptedDaemon daemon(socket());
  daemon.keep_streams_open = true;
  EventStream limited = client(1ms).subscribe_sandbox_events({}, {.timeout = 100ms});
  const auto end = limited.next();
  ASSERT_FALSE(end.has_value());
  EXPECT_EQ(end.error().kind, ErrorKind::Timeout);

  daemon.events = {numbered(1)};
  EventStream endless = client(1ms).subscribe_sandbox_events({});
  const auto event = endless.next();  // although the connection alone takes longer than 1 ms
  ASSERT_TRUE(event.has_value()) << event.error().message;
}

TEST_F(RawClientTest, AStreamIsCancelledFromAnotherThread) {
  ScriptedDaemon daemon(socket());
  daemon.keep_streams_open = true;
  daemon.events = {numbered(1)};
  EventStream stream = client().subscribe_sandbox_events({});
  ASSERT_TRUE(stream.next().has_value());
  std::thread other([&] { stream.cancel(); });
  const auto end = stream.next();
  other.join();
  ASSERT_FALSE(end.has_value());
  EXPECT_EQ(end.error().kind, ErrorKind::Cancelled);
}

TEST_F(RawClientTest, LeavingAnOpenStreamDoesNotBlock) {
  ScriptedDaemon daemon(socket());
  daemon.keep_streams_open = true;
  daemon.events = {numbered(1), numbered(2), numbered(3)};
  EventStream stream = client().subscribe_sandbox_events({});
  ASSERT_TRUE(stream.next().has_value());
}

TEST_F(RawClientTest, AStreamWhoseDaemonEndsIsUnreachable) {
  auto daemon = std::make_unique<ScriptedDaemon>(socket());
  daemon->keep_streams_open = true;
  daemon->events = {numbered(1)};
  EventStream stream = client().subscribe_sandbox_events({});
  ASSERT_TRUE(stream.next().has_value());
  daemon.reset();
  const auto end = stream.next();
  ASSERT_FALSE(end.has_value());
  EXPECT_EQ(end.error().kind, ErrorKind::Unreachable);
  EXPECT_EQ(end.error().socket->problem, SocketProblem::Missing);
}

v1::SubscribeEventsResponse at_cursor(const std::string& cursor, std::uint64_t sequence = 0) {
  v1::SubscribeEventsResponse message;
  message.set_cursor(cursor);
  if (sequence > 0) *message.mutable_event() = numbered(sequence);
  return message;
}

TEST_F(RawClientTest, AFollowerOfAllEventsResumesBehindTheLastCursor) {
  ScriptedDaemon daemon(socket());
  daemon.all_events = {at_cursor("c-1", 1), at_cursor("c-2", 2), at_cursor("c-3"),
                       at_cursor("c-4", 4), at_cursor("c-5", 5)};
  daemon.break_all_events_after = 2;
  daemon.stream_status = grpc::Status(grpc::UNAVAILABLE, "gone");
  v1::SubscribeEventsRequest request;
  request.set_start(v1::EVENTS_START_OLDEST);
  request.add_event_types(v1::SANDBOX_READY);
  const RawClient reading = client();
  AllEventsFollower follower(reading, request, {.first_delay = 1ms});
  std::string seen;
  for (int i = 0; i < 5; ++i) {
    const auto message = follower.next();
    ASSERT_TRUE(message.has_value()) << message.error().message;
    seen += message->cursor() + ":" + std::to_string(message->event().sequence()) + " ";
  }
  EXPECT_EQ(seen, "c-1:1 c-2:2 c-3:0 c-4:4 c-5:5 ");
  std::vector<std::string> subscriptions;
  for (const std::string& call : daemon.calls()) {
    if (call.starts_with("Subscribe")) subscriptions.push_back(call);
  }
  EXPECT_THAT(subscriptions,
              ElementsAre("SubscribeEvents event_types: SANDBOX_READY start: EVENTS_START_OLDEST",
                          "SubscribeEvents event_types: SANDBOX_READY cursor: \"c-2\"",
                          "SubscribeEvents event_types: SANDBOX_READY cursor: \"c-4\""));
}

TEST_F(RawClientTest, AFollowerOfAllEventsEndsWithARefusalOrAStop) {
  ScriptedDaemon daemon(socket());
  daemon.status = ErrorInfoBytes{.code = grpc::OUT_OF_RANGE,
                                 .message = "of another store",
                                 .reason = "EVENT_CURSOR_OUT_OF_RANGE"}
                      .status();
  v1::SubscribeEventsRequest request;
  request.set_cursor("other-1");
  const RawClient reading = client();
  AllEventsFollower refused(reading, request);
  const auto end = refused.next();
  ASSERT_FALSE(end.has_value());
  EXPECT_EQ(end.error().code, StatusCode::OutOfRange);
  EXPECT_EQ(end.error().reason, "EVENT_CURSOR_OUT_OF_RANGE");

  daemon.status = grpc::Status::OK;
  daemon.keep_streams_open = true;
  std::stop_source stop;
  AllEventsFollower stopped(reading, request, {.stop = stop.get_token()});
  std::jthread other([&] {
    daemon.wait_for_call("SubscribeEvents");
    stop.request_stop();
  });
  EXPECT_EQ(stopped.next().error().kind, ErrorKind::Cancelled);
}

class DefaultSocketPath : public testing::Test {
 protected:
  void TearDown() override { ::unsetenv("XDG_RUNTIME_DIR"); }
};

TEST_F(DefaultSocketPath, FollowsTheRuntimeDirectory) {
  ASSERT_EQ(::setenv("XDG_RUNTIME_DIR", "/run/user/77", 1), 0);
  EXPECT_EQ(default_socket_path(), std::filesystem::path("/run/user/77/agbox/agboxd.sock"));
}

TEST_F(DefaultSocketPath, SaysWhatToSet) {
  ::unsetenv("XDG_RUNTIME_DIR");
  const auto path = default_socket_path();
  ASSERT_FALSE(path.has_value());
  EXPECT_EQ(path.error().kind, ErrorKind::NoSocketPath);
  EXPECT_THAT(path.error().message, HasSubstr("XDG_RUNTIME_DIR is required"));
  const auto client = RawClient::open();
  ASSERT_FALSE(client.has_value());
  EXPECT_EQ(client.error().message, path.error().message);
}

}  // namespace
}  // namespace agbox::sdk
