// SPDX-License-Identifier: Apache-2.0
#include <agbox/client.h>
#include <gmock/gmock.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>

#include "base/tar/tar_writer.h"
#include "unit/sdk/attach_script.h"
#include "unit/sdk/raw_client_fixture.h"

namespace agbox::sdk {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

grpc::Status daemon_error(grpc::StatusCode code, const std::string& reason,
                          const std::string& message = "refused") {
  return test::ErrorInfoBytes{.code = code, .message = message, .reason = reason}.status();
}

v1::SandboxEvent phase_event(std::uint64_t sequence, v1::EventType type, v1::SandboxState state) {
  v1::SandboxEvent event;
  event.set_sandbox_id("box-1");
  event.set_sequence(sequence);
  event.set_event_type(type);
  event.set_sandbox_state(state);
  return event;
}

class ClientTest : public RawClientTest {
 protected:
  // A sandbox that is accepted and becomes ready; an exec that is accepted.
  static void prepare(test::ScriptedDaemon& daemon) {
    daemon.sandbox.set_sandbox_id("box-1");
    daemon.sandbox.set_state(v1::SANDBOX_STATE_PENDING);
    daemon.sandbox.set_last_event_sequence(1);
    daemon.events = {
        phase_event(1, v1::SANDBOX_ACCEPTED, v1::SANDBOX_STATE_PENDING),
        phase_event(2, v1::SANDBOX_READY, v1::SANDBOX_STATE_READY),
    };
    daemon.keep_streams_open = true;
    daemon.exec.set_exec_id("exec-1");
    daemon.exec.set_state(v1::EXEC_STATE_RUNNING);
  }

  Client connect(const ConnectOptions& options = {}) const {
    ConnectOptions used = options;
    used.socket = socket();
    return Client::open(used).value();
  }
  Sandbox box() const { return connect().sandbox("box-1"); }
  std::vector<std::string> calls_of(const std::string& method) const {
    std::vector<std::string> found;
    for (const std::string& call : daemon_.calls()) {
      if (call.starts_with(method)) found.push_back(call);
    }
    return found;
  }
  void attach(test::AttachConnection connection) {
    daemon_.attach_connections.push_back(std::move(connection));
  }

  test::ScriptedDaemon daemon_{socket(), prepare};
};

TEST_F(ClientTest, ASandboxIsReadyWhenItsCreateReturns) {
  const auto made = connect().create({.image = "debian:12", .id = "box-1"});
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_EQ(made->id(), "box-1");
  EXPECT_THAT(
      daemon_.calls(),
      ElementsAre("Ping",
                  "CreateSandbox create_spec { image: \"debian:12\" } sandbox_id: \"box-1\"",
                  "SubscribeSandboxEvents sandbox_id: \"box-1\" from_sequence: 1"));
}

TEST_F(ClientTest, EveryFieldOfASpecificationIsSent) {
  const Service database{.name = "db",
                         .image = "postgres:15",
                         .envs = {{"A", "1"}},
                         .health_check = HealthCheck{.test = {"CMD", "true"}, .interval = 1500ms},
                         .post_start_on_primary = {"true"},
                         .command = {"postgres"},
                         .cpu_limit = "1",
                         .memory_limit = "1g",
                         .disk_limit = "2g"};
  const auto made = connect().create(
      {.image = "debian:12",
       .id = "box-1",
       .config_yaml = "image: x",
       .command = {"sleep", "1"},
       .bypass_entrypoint = true,
       .mounts = {{.source = "/a", .target = "/b", .writable = true}},
       .copies = {{.source = "/c", .target = "/d", .exclude_patterns = {"*.o"}}},
       .ports = {{.container_port = 80, .host_port = 8080, .protocol = PortProtocol::Udp}},
       .builtin_tools = {"git"},
       .required_services = {database},
       .optional_services = {{.name = "cache", .image = "redis:7"}},
       .companion_containers = {{.name = "other", .image = "other:1"}},
       .labels = {{"l", "1"}},
       .envs = {{"e", "2"}},
       .idle_ttl = 0s,
       .lease_ttl = 5s,
       .cpu_limit = "1.5",
       .memory_limit = "512m",
       .disk_limit = "3g",
       .gpus = "all"});
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(
      calls_of("CreateSandbox").front(),
      "CreateSandbox create_spec { image: \"debian:12\" "
      "mounts { source: \"/a\" target: \"/b\" writable: true } "
      "copies { source: \"/c\" target: \"/d\" exclude_patterns: \"*.o\" } builtin_tools: \"git\" "
      "companion_containers { name: \"other\" image: \"other:1\" } "
      "labels { key: \"l\" value: \"1\" } envs { key: \"e\" value: \"2\" } idle_ttl { } "
      "ports { container_port: 80 host_port: 8080 protocol: PORT_PROTOCOL_UDP } "
      "command: \"sleep\" command: \"1\" cpu_limit: \"1.5\" memory_limit: \"512m\" "
      "disk_limit: \"3g\" gpus: \"all\" "
      "required_services { name: \"db\" image: \"postgres:15\" envs { key: \"A\" value: \"1\" } "
      "healthcheck { test: \"CMD\" test: \"true\" interval { seconds: 1 nanos: 500000000 } } "
      "post_start_on_primary: \"true\" command: \"postgres\" cpu_limit: \"1\" "
      "memory_limit: \"1g\" disk_limit: \"2g\" } "
      "optional_services { name: \"cache\" image: \"redis:7\" } bypass_entrypoint: true "
      "lease_ttl { seconds: 5 } } "
      "sandbox_id: \"box-1\" config_yaml: \"image: x\"");
}

TEST_F(ClientTest, ASandboxIsDeletedByItsDestructorUnlessItIsKept) {
  {
    auto first = connect().create({.image = "debian:12", .id = "box-1"});
    ASSERT_TRUE(first.has_value());
    const Sandbox moved = std::move(*first);
    EXPECT_THAT(calls_of("DeleteSandbox"), IsEmpty()) << "moved, not destroyed";
  }
  EXPECT_THAT(calls_of("DeleteSandbox"), ElementsAre("DeleteSandbox sandbox_id: \"box-1\""));
  {
    auto kept = connect().create({.image = "debian:12", .id = "box-1"});
    ASSERT_TRUE(kept.has_value());
    kept->keep();
    const Sandbox existing = box();
  }
  EXPECT_THAT(calls_of("DeleteSandbox"), SizeIs(1));
}

TEST_F(ClientTest, ASandboxWithALeaseIsHeldAsLongAsItsObjectLives) {
  daemon_.sandbox.mutable_lease_ttl()->set_seconds(5);
  {
    auto made = connect().create({.image = "debian:12", .id = "box-1", .lease_ttl = 5s});
    ASSERT_TRUE(made.has_value()) << made.error().message;
    made->keep();
    EXPECT_EQ(daemon_.holds(), 1);
    const Sandbox moved = std::move(*made);
    EXPECT_EQ(moved.info()->lease_ttl, 5s);
    EXPECT_EQ(daemon_.holds(), 1) << "moved, not released";
  }
  EXPECT_TRUE(daemon_.wait_for_holds(0));
  Sandbox existing = box();
  EXPECT_EQ(daemon_.holds(), 0);
  ASSERT_TRUE(existing.hold().has_value());
  EXPECT_EQ(daemon_.holds(), 1);
}

TEST_F(ClientTest, ASandboxThatCannotBeHeldIsDeleted) {
  daemon_.sandbox.mutable_lease_ttl()->set_seconds(5);
  daemon_.hold_statuses = {daemon_error(grpc::FAILED_PRECONDITION, "SANDBOX_INVALID_STATE")};
  const auto made = connect().create({.image = "debian:12", .id = "box-1", .lease_ttl = 5s});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().kind, ErrorKind::SandboxInvalidState);
  EXPECT_THAT(calls_of("DeleteSandbox"), SizeIs(1));
}

TEST_F(ClientTest, AssigningToASandboxDeletesTheOneThatItWas) {
  auto made = connect().create({.image = "debian:12", .id = "box-1"});
  ASSERT_TRUE(made.has_value());
  *made = connect().sandbox("box-2");
  EXPECT_THAT(calls_of("DeleteSandbox"), ElementsAre("DeleteSandbox sandbox_id: \"box-1\""));
}

TEST_F(ClientTest, ADeletionIsRepeatedAfterALoss) {
  {
    auto made = connect().create({.image = "debian:12", .id = "box-1"});
    ASSERT_TRUE(made.has_value());
    daemon_.next_statuses = {{grpc::UNAVAILABLE, "Socket closed"}};
  }
  EXPECT_THAT(calls_of("DeleteSandbox"), SizeIs(2));
}

TEST_F(ClientTest, ALostResponseDoesNotMakeASecondSandbox) {
  daemon_.next_statuses = {{grpc::UNAVAILABLE, "Socket closed"},
                           daemon_error(grpc::ALREADY_EXISTS, "SANDBOX_ID_ALREADY_EXISTS")};
  daemon_.sandbox.set_state(v1::SANDBOX_STATE_READY);
  auto made = connect().create({.image = "debian:12"});
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const auto creates = calls_of("CreateSandbox");
  ASSERT_THAT(creates, SizeIs(2));
  EXPECT_EQ(creates[0], creates[1]) << "the same request under the same ID";
  EXPECT_THAT(creates[0], HasSubstr("sandbox_id: \"" + made->id() + "\""));
}

TEST_F(ClientTest, AnIdOfTheCallerIsSentOnceAndItsSandboxIsNotDeleted) {
  daemon_.next_statuses = {{grpc::UNAVAILABLE, "Socket closed"}};
  EXPECT_FALSE(connect().create({.image = "debian:12", .id = "box-1"}).has_value());
  daemon_.next_statuses = {daemon_error(grpc::ALREADY_EXISTS, "SANDBOX_ID_ALREADY_EXISTS")};
  const auto made = connect().create({.image = "debian:12", .id = "box-1"});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().kind, ErrorKind::SandboxConflict);
  EXPECT_THAT(calls_of("CreateSandbox"), SizeIs(2));
  EXPECT_THAT(calls_of("DeleteSandbox"), IsEmpty());
}

TEST_F(ClientTest, ASandboxThatFailsToStartIsDeleted) {
  daemon_.events[1] = phase_event(2, v1::SANDBOX_FAILED, v1::SANDBOX_STATE_FAILED);
  daemon_.events[1].mutable_sandbox_phase()->set_error_message("no such image");
  const auto made = connect().create({.image = "debian:12", .id = "box-1"});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().kind, ErrorKind::SandboxFailed);
  EXPECT_EQ(made.error().message, "sandbox box-1 failed: no such image");
  EXPECT_THAT(calls_of("DeleteSandbox"), SizeIs(1));
}

TEST_F(ClientTest, ACreateThatTakesTooLongIsDeleted) {
  daemon_.events.pop_back();
  const auto made = connect().create({.image = "debian:12", .id = "box-1"}, {.wait_timeout = 50ms});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().kind, ErrorKind::Timeout);
  EXPECT_EQ(made.error().message, "waiting for sandbox box-1 to be ready took longer than 50 ms");
  EXPECT_THAT(calls_of("DeleteSandbox"), SizeIs(1));
}

TEST_F(ClientTest, AStopRequestEndsACreate) {
  daemon_.events.pop_back();
  std::stop_source stop;
  std::jthread impatient([&] {
    EXPECT_TRUE(daemon_.wait_for_call("SubscribeSandboxEvents"));
    stop.request_stop();
  });
  const auto made =
      connect().create({.image = "debian:12", .id = "box-1"}, {.stop = stop.get_token()});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().kind, ErrorKind::Cancelled);
  EXPECT_THAT(calls_of("DeleteSandbox"), SizeIs(1));
}

TEST_F(ClientTest, StopResumeAndRemoveWait) {
  Sandbox existing = box();
  daemon_.sandbox.set_state(v1::SANDBOX_STATE_STOPPED);
  EXPECT_TRUE(existing.stop().has_value());
  daemon_.sandbox.set_state(v1::SANDBOX_STATE_READY);
  EXPECT_TRUE(existing.resume().has_value());
  EXPECT_EQ(existing.stop({.wait_timeout = 20ms}).error().message,
            "waiting for sandbox box-1 to be STOPPED took longer than 20 ms");
  daemon_.sandbox.set_state(v1::SANDBOX_STATE_DELETED);
  EXPECT_TRUE(existing.remove().has_value());
  daemon_.status = daemon_error(grpc::NOT_FOUND, "SANDBOX_NOT_FOUND");
  EXPECT_TRUE(existing.remove().has_value()) << "it is gone already";
  EXPECT_EQ(existing.info().error().kind, ErrorKind::SandboxNotFound);
}

TEST_F(ClientTest, OnlyStatesThatLastCanBeWaitedFor) {
  const auto waited = box().wait_for(SandboxState::Pending);
  ASSERT_FALSE(waited.has_value());
  EXPECT_EQ(waited.error().message,
            "cannot wait for state PENDING: wait for READY, STOPPED or DELETED");
}

TEST_F(ClientTest, ACommandsOutputAndEndAreItsResult) {
  attach([](test::AttachStream& stream, const v1::AttachStart& start) {
    EXPECT_FALSE(start.write());
    EXPECT_TRUE(start.has_stdout_offset());
    EXPECT_EQ(start.stdout_offset(), 0U);
    test::attached(stream, 0);
    test::print(stream, 0, "hello ");
    test::print(stream, 0, "warning", v1::OUTPUT_STREAM_STDERR);
    test::print(stream, 6, "there");
    return test::end_exec(stream, 3);
  });
  const auto result = box().run({"sh", "-c", "greet"});
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(result->out, "hello there");
  EXPECT_EQ(result->err, "warning");
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->state, ExecState::Failed);
  EXPECT_FALSE(result->is_ok());
  EXPECT_FALSE(result->is_truncated);
  EXPECT_THAT(calls_of("CancelExec"), IsEmpty());
  EXPECT_THAT(calls_of("CreateExec").front(),
              StartsWith("CreateExec sandbox_id: \"box-1\" command: \"sh\" command: \"-c\" "
                         "command: \"greet\" exec_id: \""));
}

TEST_F(ClientTest, EveryFieldOfACommandIsSent) {
  attach([](test::AttachStream& stream, const v1::AttachStart& start) {
    EXPECT_TRUE(start.write());
    test::attached(stream, 0);
    return test::end_exec(stream, 0);
  });
  const auto result = box().run({.args = {"top"},
                                 .cwd = "/tmp",
                                 .env = {{"A", "1"}},
                                 .user = "root",
                                 .container = "db",
                                 .command_timeout = 1500ms,
                                 .exec_id = "exec-1",
                                 .input = "",
                                 .terminal = Terminal{.rows = 3, .columns = 4, .term = "vt100"}});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(calls_of("CreateExec").front(),
            "CreateExec sandbox_id: \"box-1\" command: \"top\" cwd: \"/tmp\" "
            "env_overrides { key: \"A\" value: \"1\" } exec_id: \"exec-1\" user: \"root\" "
            "timeout { seconds: 1 nanos: 500000000 } stdin: true "
            "terminal { size { rows: 3 columns: 4 } term: \"vt100\" } container: \"db\"");
}

TEST_F(ClientTest, InputIsWrittenAndEnded) {
  std::string taken;
  attach([&](test::AttachStream& stream, const v1::AttachStart&) {
    test::attached(stream, 0);
    v1::AttachExecRequest request;
    while (stream.Read(&request) && !request.has_end_input()) {
      taken += request.input();
      test::accept_input(stream, taken.size());
    }
    return test::end_exec(stream, 0);
  });
  const std::string input(300'000, 'x');
  const auto result = box().run({.args = {"sort"}, .input = input});
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(taken, input);
}

TEST_F(ClientTest, ACommandNeedNotReadItsInput) {
  attach([](test::AttachStream& stream, const v1::AttachStart&) {
    test::attached(stream, 0);
    return test::end_exec(stream, 0);
  });
  EXPECT_TRUE(box().run({.args = {"true"}, .input = std::string(300'000, 'x')}).has_value());
}

TEST_F(ClientTest, OutputBeyondTheMaximumIsDropped) {
  attach([](test::AttachStream& stream, const v1::AttachStart&) {
    test::attached(stream, 0);
    test::print(stream, 0, "12345");
    test::print(stream, 5, "67890");
    return test::end_exec(stream, 0);
  });
  const auto result = box().run({.args = {"yes"}, .max_output = 7});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->out, "1234567");
  EXPECT_TRUE(result->is_truncated);
}

TEST_F(ClientTest, OutputContinuesAfterALostConnection) {
  attach([](test::AttachStream& stream, const v1::AttachStart&) {
    test::attached(stream, 0);
    test::print(stream, 0, "hello ");
    return test::lost();
  });
  attach([](test::AttachStream& stream, const v1::AttachStart& start) {
    EXPECT_EQ(start.stdout_offset(), 6U);
    test::attached(stream, 0);
    test::print(stream, 6, "again");
    return test::end_exec(stream, 0);
  });
  const auto result = box().run({"greet"});
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(result->out, "hello again");
  EXPECT_TRUE(result->is_ok());
}

// Until the client cancels the call.
grpc::Status run_until_it_leaves(test::AttachStream& stream, const v1::AttachStart&) {
  test::attached(stream, 0);
  test::take_input(stream);
  return grpc::Status::OK;
}

TEST_F(ClientTest, ARunThatTakesTooLongIsCancelled) {
  attach(run_until_it_leaves);
  const auto result = box().run({"sleep", "inf"}, {.wait_timeout = 50ms});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::Timeout);
  EXPECT_THAT(calls_of("CancelExec"), SizeIs(1));
}

TEST_F(ClientTest, AStopRequestCancelsARun) {
  attach(run_until_it_leaves);
  std::stop_source stop;
  std::jthread impatient([&] {
    EXPECT_TRUE(daemon_.wait_for_call("AttachExec"));
    stop.request_stop();
  });
  const auto result = box().run({.args = {"cat"}, .input = std::string(1'000'000, 'x')},
                                {.stop = stop.get_token()});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::Cancelled);
  EXPECT_THAT(calls_of("CancelExec"), SizeIs(1));
}

TEST_F(ClientTest, ACommandWhoseStartWasNotConfirmedIsCancelled) {
  daemon_.next_statuses = {{grpc::DEADLINE_EXCEEDED, "too late"}};
  const auto process = box().start({"make"});
  ASSERT_FALSE(process.has_value());
  EXPECT_EQ(process.error().kind, ErrorKind::Timeout);
  EXPECT_THAT(calls_of("CancelExec"),
              ElementsAre("CancelExec exec_id: \"" + process.error().exec_id() + "\""));
  daemon_.next_statuses = {{grpc::DEADLINE_EXCEEDED, "too late"}};
  EXPECT_FALSE(box().start({.args = {"make"}, .exec_id = "exec-1"}).has_value());
  EXPECT_THAT(calls_of("CancelExec"), SizeIs(1)) << "it may be an older one";
}

TEST_F(ClientTest, ADaemonThatStaysAwayIsReportedAfterAllAttempts) {
  attach([](test::AttachStream& stream, const v1::AttachStart&) {
    test::attached(stream, 0);
    return test::lost();
  });
  attach([](test::AttachStream&, const v1::AttachStart&) { return test::lost(); });
  const auto result = connect({.reconnect_attempts = 1}).sandbox("box-1").run({"make"});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, StatusCode::Unavailable);
  EXPECT_THAT(result.error().message, HasSubstr("could not reconnect in 1 attempts"));
  EXPECT_THAT(calls_of("CancelExec"), SizeIs(1));
}

TEST_F(ClientTest, AProcessIsIteratedPieceByPiece) {
  attach([](test::AttachStream& stream, const v1::AttachStart&) {
    test::attached(stream, 0);
    test::print(stream, 0, "one");
    test::print(stream, 0, "two", v1::OUTPUT_STREAM_STDERR);
    test::print(stream, 3, "three");
    return test::end_exec(stream, 0);
  });
  auto process = box().start({"make"});
  ASSERT_TRUE(process.has_value());
  std::vector<std::string> seen;
  for (const auto& chunk : *process) {
    ASSERT_TRUE(chunk.has_value());
    seen.push_back(std::to_string(static_cast<int>(chunk->stream)) + "@" +
                   std::to_string(chunk->offset) + " " + chunk->bytes);
  }
  EXPECT_THAT(seen, ElementsAre("1@0 one", "2@0 two", "1@3 three"));
  EXPECT_TRUE(process->wait()->is_ok());
}

TEST_F(ClientTest, AnErrorIsTheLastElement) {
  attach([](test::AttachStream& stream, const v1::AttachStart&) {
    test::attached(stream, 0);
    test::print(stream, 0, "one");
    return grpc::Status(grpc::DATA_LOSS, "the log was truncated");
  });
  auto process = box().start({"make"});
  ASSERT_TRUE(process.has_value());
  std::vector<std::string> seen;
  for (const auto& chunk : *process) seen.push_back(chunk ? chunk->bytes : chunk.error().message);
  EXPECT_THAT(seen, ElementsAre("one", "the log was truncated"));
  EXPECT_EQ(process->wait().error().message, "the log was truncated");
}

TEST_F(ClientTest, AWaitDropsOutputThatNobodyReads) {
  attach([](test::AttachStream& stream, const v1::AttachStart&) {
    test::attached(stream, 0);
    for (std::uint64_t piece = 0; piece < 40; ++piece) {
      test::print(stream, piece << 17, std::string(1 << 17, 'x'));
    }
    return test::end_exec(stream, 0);
  });
  auto process = box().start({"yes"});
  ASSERT_TRUE(process.has_value());
  EXPECT_TRUE(process->wait({.wait_timeout = 30s}).has_value());
  EXPECT_FALSE((*process->next()).has_value());
}

TEST_F(ClientTest, AProcessIsCancelledByItsDestructor) {
  attach(run_until_it_leaves);
  {
    const auto process = box().start({"sleep", "inf"});
  }
  EXPECT_THAT(calls_of("CancelExec"), ElementsAre(StartsWith("CancelExec exec_id: \"")));
}

TEST_F(ClientTest, AProcessThatIsDetachedOrWasAttachedIsNotCancelled) {
  attach(run_until_it_leaves);
  attach(run_until_it_leaves);
  {
    auto process = box().start({"sleep", "inf"});
    ASSERT_TRUE(process.has_value());
    process->detach();
    const Process attached = connect().attach("exec-1");
  }
  EXPECT_THAT(calls_of("CancelExec"), IsEmpty());
}

TEST_F(ClientTest, AProcessThatHasEndedIsNotCancelled) {
  attach(
      [](test::AttachStream& stream, const v1::AttachStart&) { return test::end_exec(stream, 0); });
  {
    auto process = box().start({"true"});
    ASSERT_TRUE(process.has_value());
    EXPECT_TRUE(process->wait().has_value());
  }
  EXPECT_THAT(calls_of("CancelExec"), IsEmpty());
}

TEST_F(ClientTest, ATerminalIsWrittenToResizedAndSignalled) {
  std::vector<std::string> got;
  attach([&](test::AttachStream& stream, const v1::AttachStart& start) {
    EXPECT_TRUE(start.write());
    test::attached(stream, 0);
    v1::AttachExecRequest request;
    while (stream.Read(&request) && !request.has_end_input()) {
      got.push_back(request.ShortDebugString());
      if (got.size() == 1) test::print(stream, 0, "ready");
    }
    return test::end_exec(stream, 0);
  });
  auto process = box().start({.args = {"sh"}, .terminal = Terminal{}});
  ASSERT_TRUE(process.has_value());
  ASSERT_TRUE(process->write("a").has_value());
  ASSERT_EQ((*process->next())->bytes, "ready");
  process->resize(30, 90);
  process->send_signal(15);
  process->end_input();
  ASSERT_TRUE(process->wait().has_value());
  EXPECT_THAT(got, ElementsAre("input: \"a\"", "resize { rows: 30 columns: 90 }", "signal: 15"));
}

TEST_F(ClientTest, ACommandWithoutInputRefusesIt) {
  attach(run_until_it_leaves);
  auto process = box().start({"true"});
  ASSERT_TRUE(process.has_value());
  const auto written = process->write("x");
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().kind, ErrorKind::ExecNotRunning);
  EXPECT_THAT(written.error().message, HasSubstr("takes no input"));
}

TEST_F(ClientTest, AStopRequestEndsAWriteThatWaits) {
  attach(run_until_it_leaves);
  auto process = box().start({.args = {"sleep", "inf"}, .takes_input = true});
  ASSERT_TRUE(process.has_value());
  std::stop_source stop;
  std::jthread impatient([&] { stop.request_stop(); });
  const auto written = process->write(std::string(1'000'000, 'x'), stop.get_token());
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().kind, ErrorKind::Cancelled);
}

TEST_F(ClientTest, ACancelReturnsHowItEnded) {
  attach([this](test::AttachStream& stream, const v1::AttachStart&) {
    test::attached(stream, 0);
    EXPECT_TRUE(daemon_.wait_for_call("CancelExec"));
    v1::AttachExecResponse response;
    response.mutable_ended()->set_state(v1::EXEC_STATE_CANCELLED);
    response.mutable_ended()->set_error_code("TIMEOUT");
    stream.Write(response);
    return grpc::Status::OK;
  });
  auto process = box().start({"sleep", "inf"});
  ASSERT_TRUE(process.has_value());
  const auto result = process->cancel();
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(to_string(result->state), "CANCELLED");
  EXPECT_TRUE(result->has_timed_out());
}

TEST_F(ClientTest, AttachBeginsAtTheOffsets) {
  attach([](test::AttachStream& stream, const v1::AttachStart& start) {
    EXPECT_EQ(start.exec_id(), "exec-1");
    EXPECT_EQ(start.stdout_offset(), 10U);
    EXPECT_EQ(start.stderr_offset(), 20U);
    test::print(stream, 10, "rest");
    return test::end_exec(stream, 0);
  });
  Process process = connect().attach("exec-1", {.stdout_offset = 10, .stderr_offset = 20});
  EXPECT_EQ((*process.next())->offset, 10U);
}

TEST_F(ClientTest, EventsComeOnceAndInOrder) {
  daemon_.events.push_back(phase_event(3, v1::EXEC_FINISHED, v1::SANDBOX_STATE_READY));
  daemon_.events.back().mutable_exec()->set_exec_id("exec-1");
  daemon_.events.back().mutable_exec()->set_exit_code(4);
  daemon_.events.push_back(phase_event(4, static_cast<v1::EventType>(99), v1::SANDBOX_STATE_READY));
  std::vector<std::string> seen;
  for (const auto& event : box().events({.after = 1})) {
    ASSERT_TRUE(event.has_value());
    seen.push_back(std::to_string(event->sequence) + " " + to_string(event->type));
    if (event->exec) EXPECT_EQ(event->exec->exit_code, 4);
    if (event->sequence == 4) break;
  }
  EXPECT_THAT(seen, ElementsAre("2 SANDBOX_READY", "3 EXEC_FINISHED", "4 UNKNOWN_99"));
}

TEST_F(ClientTest, AStopRequestIsTheLastElementOfEvents) {
  std::stop_source stop;
  std::jthread impatient([&] {
    EXPECT_TRUE(daemon_.wait_for_call("SubscribeSandboxEvents"));
    stop.request_stop();
  });
  std::optional<Error> error;
  for (const auto& event : box().events({.after = 2, .stop = stop.get_token()})) {
    ASSERT_FALSE(event.has_value());
    error = event.error();
  }
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->kind, ErrorKind::Cancelled);
}

TEST_F(ClientTest, EventsOfAllSandboxesContinueAfterACursor) {
  v1::SubscribeEventsResponse first;
  first.set_cursor("c1");
  *first.mutable_event() = phase_event(1, v1::SANDBOX_ACCEPTED, v1::SANDBOX_STATE_PENDING);
  v1::SubscribeEventsResponse second;
  second.set_cursor("c2");
  second.set_caught_up(true);
  daemon_.all_events = {first, second};
  auto events = connect().events({.labels = {{"l", "1"}}, .types = {EventType::SandboxAccepted}});
  const auto message = events.next();
  ASSERT_TRUE(message && *message);
  EXPECT_EQ((*message)->cursor, "c1");
  EXPECT_EQ((*message)->event->sandbox_id, "box-1");
  auto rest = connect().events({.cursor = "c1"});
  const auto caught_up = rest.next();
  ASSERT_TRUE(caught_up && *caught_up);
  EXPECT_TRUE((*caught_up)->is_caught_up);
  EXPECT_FALSE((*caught_up)->event.has_value());
  EXPECT_THAT(calls_of("SubscribeEvents"),
              ElementsAre("SubscribeEvents label_selector { key: \"l\" value: \"1\" } "
                          "event_types: SANDBOX_ACCEPTED start: EVENTS_START_OLDEST",
                          "SubscribeEvents cursor: \"c1\""));
}

TEST_F(ClientTest, LogsOfAContainerEndWithIt) {
  daemon_.keep_streams_open = false;
  v1::ReadContainerLogsResponse line;
  line.set_stream(v1::OUTPUT_STREAM_STDERR);
  line.set_data("listening\n");
  line.mutable_time()->set_seconds(5);
  daemon_.log = {line};
  std::vector<LogPiece> seen;
  for (const auto& piece : box().logs({.container = "db", .since = Time(2s), .tail = 3})) {
    ASSERT_TRUE(piece.has_value());
    seen.push_back(*piece);
  }
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_EQ(seen[0].stream, OutputStream::Stderr);
  EXPECT_EQ(seen[0].bytes, "listening\n");
  EXPECT_EQ(seen[0].time, Time(5s));
  EXPECT_EQ(calls_of("ReadContainerLogs").front(),
            "ReadContainerLogs sandbox_id: \"box-1\" container: \"db\" since { seconds: 2 } "
            "tail: 3");
}

TEST_F(ClientTest, ListsHaveAllPages) {
  daemon_.pages.resize(2);
  daemon_.pages[0].add_sandboxes()->set_sandbox_id("box-1");
  daemon_.pages[1].add_sandboxes()->set_sandbox_id("box-2");
  const auto found = connect().list({.include_deleted = true, .labels = {{"l", "1"}}});
  ASSERT_TRUE(found.has_value());
  ASSERT_THAT(*found, SizeIs(2));
  EXPECT_EQ(found->back().id, "box-2");
  daemon_.exec_pages.resize(2);
  daemon_.exec_pages[0].add_execs()->set_exec_id("exec-1");
  v1::ExecStatus& exec = *daemon_.exec_pages[1].add_execs();
  exec.set_exec_id("exec-2");
  exec.mutable_usage()->set_peak_memory_bytes(7);
  exec.mutable_started_at()->set_nanos(3);
  const auto execs = box().execs();
  ASSERT_TRUE(execs.has_value());
  ASSERT_THAT(*execs, SizeIs(2));
  EXPECT_EQ(execs->back().usage->peak_memory_bytes, 7U);
  EXPECT_EQ(execs->back().started_at, Time(3ns));
}

TEST_F(ClientTest, InfoHasWhatTheDaemonKnows) {
  v1::SandboxHandle& sandbox = daemon_.sandbox;
  sandbox.set_image("debian:12");
  (*sandbox.mutable_labels())["l"] = "1";
  sandbox.mutable_created_at()->set_seconds(7);
  sandbox.set_isolation_problem("a hole");
  sandbox.add_warnings("no git here");
  sandbox.add_mounts()->set_source("/a");
  sandbox.add_ports()->set_host_port(8080);
  v1::CompanionStatus& companion = *sandbox.add_companions();
  companion.set_name("db");
  companion.set_role(v1::COMPANION_ROLE_REQUIRED_SERVICE);
  companion.set_state(v1::COMPANION_STATE_READY);
  sandbox.add_builtin_resources()->set_socket(true);
  const auto info = box().info();
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(to_string(info->state), "PENDING");
  EXPECT_EQ(info->labels.at("l"), "1");
  EXPECT_EQ(info->created_at, Time(7s));
  EXPECT_FALSE(info->state_changed_at.has_value());
  EXPECT_EQ(info->isolation_problem, "a hole");
  EXPECT_THAT(info->warnings, ElementsAre("no git here"));
  EXPECT_THAT(info->mounts, ElementsAre(Mount{.source = "/a"}));
  EXPECT_THAT(info->ports, ElementsAre(Port{.host_port = 8080}));
  EXPECT_EQ(info->services.at(0).role, ServiceRole::RequiredService);
  EXPECT_EQ(info->services.at(0).state, ServiceState::Ready);
  EXPECT_TRUE(info->builtin_resources.at(0).is_socket);
}

TEST_F(ClientTest, StatsHaveEachContainer) {
  v1::SandboxStats stats;
  stats.mutable_time()->set_seconds(1);
  v1::ContainerStats& primary = *stats.add_containers();
  primary.set_name("primary");
  primary.set_running(true);
  primary.mutable_cpu_time()->set_nanos(500'000'000);
  primary.set_memory_bytes(11);
  daemon_.stats = {stats};
  const auto measured = box().stats();
  ASSERT_TRUE(measured.has_value());
  ASSERT_THAT(measured->containers, SizeIs(1));
  EXPECT_EQ(measured->containers[0].cpu_time, 500ms);
  EXPECT_EQ(measured->containers[0].memory_bytes, 11U);
  EXPECT_FALSE(measured->containers[0].memory_peak_bytes.has_value());
}

TEST_F(ClientTest, SandboxesAreRemovedByLabels) {
  daemon_.sandbox.set_state(v1::SANDBOX_STATE_DELETED);
  const auto removed = connect().remove_all({{"l", "1"}});
  ASSERT_TRUE(removed.has_value());
  EXPECT_THAT(*removed, ElementsAre("box-1"));
  EXPECT_THAT(calls_of("DeleteSandboxes"),
              ElementsAre("DeleteSandboxes label_selector { key: \"l\" value: \"1\" }"));
}

TEST_F(ClientTest, AFileIsWrittenAsACopy) {
  ASSERT_TRUE(box().write_file("/workspace/note.txt", "text").has_value());
  EXPECT_EQ(calls_of("CopyIn").front(),
            "CopyIn sandbox_id: \"box-1\" path: \"/workspace/note.txt\" "
            "placement: COPY_PLACEMENT_ROOT");
  EXPECT_THAT(daemon_.copied_in, HasSubstr("note.txt"));
  EXPECT_THAT(daemon_.copied_in, HasSubstr("text"));
  EXPECT_THAT(box().write_file("/workspace/", "text").error().message,
              HasSubstr("does not name a file"));
}

std::string tar_of(const TarEntry& entry, const std::string& bytes) {
  return tar_header(entry) + bytes + std::string(tar_padding(bytes.size())) +
         std::string(tar_end());
}

TEST_F(ClientTest, AFileIsReadUpToALimit) {
  daemon_.copy_out = tar_of({.path = "note.txt", .target = {}, .mode = 0644, .size = 4}, "text");
  EXPECT_EQ(box().read_file("/workspace/note.txt").value(), "text");
  const auto too_large = box().read_file("/workspace/note.txt", 3);
  ASSERT_FALSE(too_large.has_value());
  EXPECT_EQ(too_large.error().kind, ErrorKind::LocalFile);
}

TEST_F(ClientTest, AFileThatIsALinkIsNotFollowed) {
  daemon_.copy_out = tar_of(
      {.kind = TarEntry::Kind::Symlink, .path = "note.txt", .target = "/etc/passwd", .mode = 0777},
      "");
  const auto read = box().read_file("/workspace/note.txt");
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().message, "/workspace/note.txt of sandbox box-1 is not a file");
}

TEST_F(ClientTest, ASparseFileIsNotReadBeyondTheLimit) {
  daemon_.copy_out = tar_of({.path = "note.txt",
                             .target = {},
                             .mode = 0644,
                             .size = std::uint64_t{1} << 40,
                             .is_sparse = true},
                            "");
  const auto read = box().read_file("/workspace/note.txt", 1000);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().kind, ErrorKind::LocalFile);
}

class UnreachableClientTest : public RawClientTest {};

TEST_F(UnreachableClientTest, ADaemonThatNeverRanIsNotWaitedFor) {
  const auto client = Client::open({.socket = socket()});
  ASSERT_TRUE(client.has_value());
  const auto made = client->create({.image = "debian:12"});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().kind, ErrorKind::Unreachable);
  EXPECT_THAT(made.error().message, StartsWith("agboxd is not running"));
}

TEST_F(UnreachableClientTest, ARelativeSocketIsRefused) {
  EXPECT_FALSE(Client::open({.socket = "agboxd.sock"}).has_value());
}

}  // namespace
}  // namespace agbox::sdk
