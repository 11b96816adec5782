// SPDX-License-Identifier: Apache-2.0
#include <agbox/exec_run.h>
#include <gmock/gmock.h>

#include <thread>

#include "unit/sdk/raw_client_fixture.h"

namespace agbox::sdk {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

v1::SandboxEvent exec_event(std::uint64_t sequence, const std::string& exec_id,
                            v1::ExecState state) {
  v1::SandboxEvent event;
  event.set_sequence(sequence);
  event.mutable_exec()->set_exec_id(exec_id);
  event.mutable_exec()->set_exec_state(state);
  return event;
}

class ExecRun : public RawClientTest {
 protected:
  static void prepare(test::ScriptedDaemon& daemon) {
    daemon.exec.set_exec_id("exec-1");
    daemon.exec.set_sandbox_id("box-1");
    daemon.exec.set_state(v1::EXEC_STATE_FAILED);
    daemon.exec.set_exit_code(3);
    daemon.exec.set_last_event_sequence(4);
    daemon.exec_stdout = std::string("out\0 of it\xff", 11);
    daemon.exec_stderr = "complaints";
  }
  OutputSinks sinks() {
    return {.on_stdout = [this](std::string_view bytes) { out_ += bytes; },
            .on_stderr = [this](std::string_view bytes) { error_ += bytes; }};
  }

  test::ScriptedDaemon daemon_{socket(), prepare};
  std::string out_;
  std::string error_;
};

TEST_F(ExecRun, HandsOverBothStreamsAndTheEnd) {
  const auto exec =
      run(client(), "box-1", {"make", ""},
          {.cwd = "/tmp", .env_overrides = {{"A", "1"}}, .exec_id = "exec-1", .sinks = sinks()});
  ASSERT_TRUE(exec.has_value());
  EXPECT_EQ(exec->exit_code(), 3);
  EXPECT_EQ(out_, daemon_.exec_stdout);
  EXPECT_EQ(error_, daemon_.exec_stderr);
  EXPECT_EQ(daemon_.calls().front(),
            "CreateExec sandbox_id: \"box-1\" command: \"make\" command: \"\" cwd: \"/tmp\" "
            "env_overrides { key: \"A\" value: \"1\" } exec_id: \"exec-1\"");
}

TEST_F(ExecRun, ALostAnswerDoesNotLoseTheExec) {
  daemon_.next_statuses = {
      {grpc::UNAVAILABLE, "Socket closed"},
      test::ErrorInfoBytes{.code = grpc::ALREADY_EXISTS, .reason = "EXEC_ID_ALREADY_EXISTS"}
          .status()};
  const auto exec =
      run(client(), "box-1", {"make"},
          {.sinks = sinks(), .follow = {.first_delay = std::chrono::milliseconds(1)}});
  ASSERT_TRUE(exec.has_value()) << exec.error().message;
  EXPECT_EQ(exec->exit_code(), 3);
  EXPECT_EQ(out_, daemon_.exec_stdout);
  std::vector<std::string> creates;
  for (const std::string& call : daemon_.calls()) {
    if (call.starts_with("CreateExec")) creates.push_back(call);
  }
  ASSERT_EQ(creates.size(), 2U);
  EXPECT_EQ(creates[1], creates[0]) << "the same request under the same id";
}

TEST_F(ExecRun, AnExecThatCouldNotBeBegunHasAnIdToAskFor) {
  daemon_.status = {grpc::UNAVAILABLE, "Socket closed"};
  const auto exec = run(client(), "box-1", {"make"},
                        {.follow = {.attempts = 1, .first_delay = std::chrono::milliseconds(1)}});
  ASSERT_FALSE(exec.has_value());
  EXPECT_THAT(daemon_.calls().front(), HasSubstr("exec_id: \"" + exec.error().exec_id() + "\""));
}

TEST_F(ExecRun, AGivenIdIsSentOnce) {
  daemon_.next_statuses = {{grpc::UNAVAILABLE, "Socket closed"}};
  const auto exec = run(client(), "box-1", {"make"}, {.exec_id = "exec-1"});
  ASSERT_FALSE(exec.has_value());
  EXPECT_EQ(exec.error().code, StatusCode::Unavailable);
  EXPECT_EQ(daemon_.calls().size(), 1U);
}

TEST_F(ExecRun, AStreamWithoutASinkIsNotRead) {
  const auto exec = run(client(), "box-1", {"true"}, {.sinks = {.on_stderr = sinks().on_stderr}});
  ASSERT_TRUE(exec.has_value());
  EXPECT_EQ(error_, "complaints");
  EXPECT_THAT(daemon_.calls(), Not(Contains(HasSubstr("OUTPUT_STREAM_STDOUT"))));
}

TEST_F(ExecRun, ARefusalIsTheDaemons) {
  daemon_.status = {grpc::INVALID_ARGUMENT, "command must not be empty"};
  const auto exec = run(client(), "box-1", {});
  ASSERT_FALSE(exec.has_value());
  EXPECT_EQ(exec.error().message, "command must not be empty");
}

TEST_F(ExecRun, AStreamThatBreaksOffGoesOnBehindItsLastByte) {
  daemon_.break_output_after = 4;
  const auto read =
      read_output(client(), "exec-1", sinks(), {.first_delay = std::chrono::milliseconds(1)});
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(out_, daemon_.exec_stdout);
  EXPECT_EQ(error_, daemon_.exec_stderr);
  EXPECT_THAT(daemon_.calls(), Contains(HasSubstr("stream: OUTPUT_STREAM_STDOUT offset: 9")));
}

TEST_F(ExecRun, AnErrorOfOneStreamEndsBoth) {
  daemon_.stream_status = {grpc::DATA_LOSS, "the log was truncated"};
  const auto read = read_output(client(), "exec-1", sinks());
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, StatusCode::DataLoss);
}

TEST_F(ExecRun, ADaemonThatStaysAwayIsGivenUp) {
  daemon_.stream_status = {grpc::UNAVAILABLE, "going"};
  const auto read = read_output(client(), "exec-1", {.on_stdout = sinks().on_stdout},
                                {.attempts = 2, .first_delay = std::chrono::milliseconds(1)});
  ASSERT_FALSE(read.has_value());
  EXPECT_THAT(read.error().message,
              StartsWith("output stream of exec exec-1 closed unexpectedly: could not reconnect in "
                         "2 attempts: "));
  EXPECT_EQ(out_, daemon_.exec_stdout) << "no byte twice";
}

TEST_F(ExecRun, AStopEndsTheWaiting) {
  daemon_.keep_streams_open = true;
  std::stop_source stop;
  std::thread impatient([&] {
    EXPECT_TRUE(daemon_.wait_for_call("ReadExecOutput"));
    stop.request_stop();
  });
  const auto exec =
      run(client(), "box-1", {"true"}, {.sinks = sinks(), .follow = {.stop = stop.get_token()}});
  impatient.join();
  ASSERT_FALSE(exec.has_value());
  EXPECT_EQ(exec.error().kind, ErrorKind::Cancelled);
}

TEST_F(ExecRun, WhatIsThereIsReadWithoutFollowing) {
  ASSERT_TRUE(read_output(client(), "exec-1", sinks(), {}, OutputExtent::SoFar).has_value());
  EXPECT_EQ(out_, daemon_.exec_stdout);
  EXPECT_THAT(daemon_.calls(), Not(Contains(HasSubstr("follow"))));
}

TEST_F(ExecRun, WaitingLooksAtEventsOfThatExecAlone) {
  daemon_.exec.set_state(v1::EXEC_STATE_RUNNING);
  daemon_.events = {exec_event(5, "exec-2", v1::EXEC_STATE_FINISHED),
                    exec_event(6, "exec-1", v1::EXEC_STATE_RUNNING),
                    exec_event(7, "exec-1", v1::EXEC_STATE_FINISHED)};
  daemon_.keep_streams_open = true;
  ASSERT_TRUE(wait_for_exec(client(), "exec-1").has_value());
  EXPECT_THAT(daemon_.calls(),
              testing::ElementsAre(StartsWith("GetExec"),
                                   "SubscribeSandboxEvents sandbox_id: \"box-1\" from_sequence: 4",
                                   StartsWith("GetExec")));
}

TEST_F(ExecRun, AnUnknownExecIsNamed) {
  daemon_.status = test::ErrorInfoBytes{.code = grpc::NOT_FOUND,
                                        .message = "exec nope was not found",
                                        .reason = "EXEC_NOT_FOUND",
                                        .metadata = {{"exec_id", "nope"}}}
                       .status();
  const auto exec = wait_for_exec(client(), "nope");
  ASSERT_FALSE(exec.has_value());
  EXPECT_EQ(exec.error().kind, ErrorKind::ExecNotFound);
  EXPECT_EQ(read_output(client(), "nope", sinks()).error().message, "Exec nope not found.");
}

}  // namespace
}  // namespace agbox::sdk
