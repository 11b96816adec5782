// SPDX-License-Identifier: Apache-2.0
// agbox sandbox stop and resume.
#include <gmock/gmock.h>

#include "unit/cli/commands_fixture.h"

namespace agbox::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

class SandboxStateCommands : public Commands {
 protected:
  static void stopping(test::ScriptedDaemon& daemon) {
    moves(daemon, v1::SANDBOX_STATE_READY, v1::SANDBOX_STOPPED, v1::SANDBOX_STATE_STOPPED);
  }
  static void resuming(test::ScriptedDaemon& daemon) {
    moves(daemon, v1::SANDBOX_STATE_PENDING, v1::SANDBOX_READY, v1::SANDBOX_STATE_READY);
  }
};

TEST_F(SandboxStateCommands, StopWaitsUntilItIsStopped) {
  test::ScriptedDaemon daemon(socket(), stopping);
  EXPECT_EQ(run({"sandbox", "stop", "box-1"}), 0);
  EXPECT_EQ(out_, "");
  EXPECT_THAT(error_, MatchesRegex("Waiting for sandbox box-1 to be stopped\\.\\.\\.\n"
                                   "Sandbox stopped in [0-9]+\\.[0-9]s\\.\n"));
  EXPECT_THAT(daemon.calls(),
              ElementsAre("StopSandbox sandbox_id: \"box-1\"", "GetSandbox sandbox_id: \"box-1\"",
                          "SubscribeSandboxEvents sandbox_id: \"box-1\" from_sequence: 4"));
}

TEST_F(SandboxStateCommands, ResumeWaitsUntilItIsReady) {
  test::ScriptedDaemon daemon(socket(), resuming);
  EXPECT_EQ(run({"sandbox", "resume", "box-1"}), 0);
  EXPECT_EQ(out_, "");
  EXPECT_THAT(error_, MatchesRegex("Waiting for sandbox box-1 to be resumed\\.\\.\\.\n"
                                   "Sandbox resumed in [0-9]+\\.[0-9]s\\.\n"));
  EXPECT_EQ(daemon.calls().front(), "ResumeSandbox sandbox_id: \"box-1\"");
}

TEST_F(SandboxStateCommands, JsonIsTheSandboxOnceItIsThere) {
  test::ScriptedDaemon daemon(socket(), stopping);
  daemon.sandbox = box_in(v1::SANDBOX_STATE_STOPPED);
  EXPECT_EQ(run({"sandbox", "stop", "box-1", "--json"}), 0);
  EXPECT_THAT(out_, StartsWith("{\n  \"sandbox\": {\n    \"sandbox_id\": \"box-1\",\n"
                               "    \"state\": \"SANDBOX_STATE_STOPPED\",\n"));
  EXPECT_THAT(error_, HasSubstr("Sandbox stopped in "));
}

TEST_F(SandboxStateCommands, AFailureIsToldWithWhatCanBeDone) {
  test::ScriptedDaemon daemon(socket(), resuming);
  auto failed = moved(v1::SANDBOX_FAILED, v1::SANDBOX_STATE_FAILED);
  failed.mutable_sandbox_phase()->set_error_message("its network is gone");
  daemon.events = {failed};
  EXPECT_EQ(run({"sandbox", "resume", "box-1", "--json"}), 1);
  EXPECT_THAT(out_, StartsWith("{\"error\": {\"message\": \"sandbox box-1 failed: its network"));
  EXPECT_EQ(error_,
            "Waiting for sandbox box-1 to be resumed...\n"
            "sandbox box-1 failed: its network is gone\n"
            "  Show sandbox:       agbox sandbox get box-1\n"
            "  Delete sandbox:     agbox sandbox delete box-1\n");
}

TEST_F(SandboxStateCommands, ADeleteMeanwhileEndsTheWait) {
  test::ScriptedDaemon daemon(socket(), stopping);
  daemon.events = {moved(v1::SANDBOX_DELETE_REQUESTED, v1::SANDBOX_STATE_DELETING)};
  EXPECT_EQ(run({"sandbox", "stop", "box-1"}), 1);
  EXPECT_THAT(error_, HasSubstr("\nsandbox box-1 was deleted while waiting for stop\n"));
  daemon.sandbox = box_in(v1::SANDBOX_STATE_PENDING);
  EXPECT_EQ(run({"sandbox", "resume", "box-1"}), 1);
  EXPECT_THAT(error_, HasSubstr("\nsandbox box-1 was deleted while waiting for resume\n"));
}

TEST_F(SandboxStateCommands, ARefusalIsNamed) {
  test::ScriptedDaemon daemon(socket());
  daemon.status = test::ErrorInfoBytes{.code = grpc::FAILED_PRECONDITION,
                                       .message = "sandbox box-1 is not stopped",
                                       .reason = "SANDBOX_INVALID_STATE",
                                       .metadata = {{"sandbox_id", "box-1"}}}
                      .status();
  EXPECT_EQ(run({"sandbox", "resume", "box-1"}), 1);
  EXPECT_EQ(error_, "resume sandbox: sandbox box-1 is not stopped\n");
  daemon.status = unknown("nope");
  EXPECT_EQ(run({"sandbox", "stop", "nope"}), 1);
  EXPECT_EQ(error_, "stop sandbox: Sandbox nope not found.\n");
}

TEST_F(SandboxStateCommands, ExactlyOneSandbox) {
  EXPECT_EQ(run({"sandbox", "stop"}), 2);
  EXPECT_THAT(error_, StartsWith("Error: accepts 1 arg(s), received 0\n\nUsage:\n"
                                 "  agbox sandbox stop <sandbox_id> [flags]\n"));
  EXPECT_EQ(run({"sandbox", "resume", "a", "b"}), 2);
  EXPECT_THAT(error_, StartsWith("Error: accepts 1 arg(s), received 2\n"));
}

TEST_F(SandboxStateCommands, CtrlCEndsTheWaitAndNotTheStop) {
  test::ScriptedDaemon daemon(socket(), stopping);
  daemon.events.clear();
  const auto person = interrupt_at(daemon, "SubscribeSandboxEvents");
  EXPECT_EQ(run({"sandbox", "stop", "box-1"}), 130);
  EXPECT_THAT(error_, HasSubstr("\nStopped waiting; the daemon continues the stop.\n"));
}

}  // namespace
}  // namespace agbox::cli
