// SPDX-License-Identifier: Apache-2.0
// agbox run: a sandbox for one command.
#include <gmock/gmock.h>

#include "unit/cli/commands_fixture.h"

namespace agbox::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

class RunCommand : public Commands {
 protected:
  static void prepare(test::ScriptedDaemon& daemon) {
    daemon.sandbox = box_in(v1::SANDBOX_STATE_READY);
    daemon.exec.set_exec_id("exec-1");
    daemon.exec.set_sandbox_id("box-1");
    daemon.exec.set_state(v1::EXEC_STATE_FINISHED);
    daemon.exec_stdout = "out\n";
    daemon.exec_stderr = "err\n";
  }
  // The methods that were called, in order.
  std::vector<std::string> methods() const {
    std::vector<std::string> names;
    for (const std::string& call : daemon_.calls()) names.push_back(call.substr(0, call.find(' ')));
    return names;
  }
  int deletions() const {
    const auto names = methods();
    return static_cast<int>(std::ranges::count(names, "DeleteSandbox"));
  }

  test::ScriptedDaemon daemon_{socket(), prepare};
};

TEST_F(RunCommand, CreatesRunsAndDeletes) {
  EXPECT_EQ(run({"run", "--name", "box-1", "-e", "A=1", "-l", "b=2", "-w", "/tmp", "debian:12",
                 "-u", "root", "--", "ls", "-l"}),
            0);
  EXPECT_EQ(out_, "out\n");
  EXPECT_EQ(error_, "err\n");
  const auto calls = daemon_.calls();
  EXPECT_THAT(calls.front(),
              AllOf(StartsWith("CreateSandbox create_spec { image: \"debian:12\" labels { key: "
                               "\"b\" value: \"2\" } envs { key: \"A\" value: \"1\" } lease_ttl "
                               "{ seconds: 10 } }"),
                    HasSubstr("sandbox_id: \"box-1\"")));
  EXPECT_THAT(calls, Contains(AllOf(StartsWith("CreateExec sandbox_id: \"box-1\" command: \"ls\" "
                                               "command: \"-l\" cwd: \"/tmp\""),
                                    HasSubstr("user: \"root\""))));
  EXPECT_EQ(calls.back(), "DeleteSandbox sandbox_id: \"box-1\"");
}

TEST_F(RunCommand, WithoutANameItChoosesOne) {
  EXPECT_EQ(run({"run", "debian:12", "ls"}), 0);
  EXPECT_THAT(daemon_.calls().front(), testing::ContainsRegex("sandbox_id: \"[0-9a-f-]{36}\""));
  EXPECT_THAT(daemon_.calls().back(), testing::ContainsRegex("sandbox_id: \"[0-9a-f-]{36}\""));
}

TEST_F(RunCommand, TheExitCodeIsTheCommands) {
  daemon_.exec.set_state(v1::EXEC_STATE_FAILED);
  for (const int code : {1, 2, 126, 127}) {
    daemon_.exec.set_exit_code(code);
    daemon_.exec.set_error("exit code " + std::to_string(code));
    EXPECT_EQ(run({"run", "debian:12", "false"}), code);
  }
  EXPECT_EQ(deletions(), 4);
}

TEST_F(RunCommand, AFailureOfAgboxIs125) {
  EXPECT_EQ(run({"run"}), 125);
  EXPECT_THAT(error_,
              StartsWith("Error: accepts 1 arg(s), received 0\n\nUsage:\n  agbox run <image> "
                         "[flags] [--] [<command> [args...]]\n"));
  EXPECT_EQ(run({"run", "debian:12"}), 125);
  EXPECT_THAT(error_, StartsWith("run requires a command, such as \"agbox run IMAGE -- ls -l\""));
  EXPECT_EQ(run({"run", "--nope", "debian:12", "ls"}), 125);
  EXPECT_EQ(run({"run", "--idle-ttl", "x", "debian:12", "ls"}), 125);
  EXPECT_EQ(run({"run", "--timeout", "x", "debian:12", "ls"}), 125);
  EXPECT_EQ(run({"run", "--detach-keys", "x-y", "debian:12", "ls"}), 125);
  EXPECT_THAT(daemon_.calls(), testing::IsEmpty());
}

TEST_F(RunCommand, ASandboxThatWasRefusedIsNotDeleted) {
  daemon_.status = {grpc::ALREADY_EXISTS, "it exists"};
  EXPECT_EQ(run({"run", "--name", "box-1", "debian:12", "ls"}), 125);
  EXPECT_EQ(error_, "create sandbox: it exists\n");
  EXPECT_THAT(methods(), ElementsAre("CreateSandbox"));
}

TEST_F(RunCommand, ASandboxThatFailsIsDeleted) {
  daemon_.sandbox = box_in(v1::SANDBOX_STATE_FAILED);
  daemon_.sandbox.set_error_message("no such image");
  EXPECT_EQ(run({"run", "--name", "box-1", "debian:12", "ls"}), 125);
  EXPECT_EQ(error_, "sandbox box-1 failed: no such image\n");
  EXPECT_THAT(methods(), ElementsAre("CreateSandbox", "DeleteSandbox"));
}

TEST_F(RunCommand, ACommandThatIsRefusedDeletesTheSandbox) {
  daemon_.next_statuses = {grpc::Status::OK, {grpc::INVALID_ARGUMENT, "no such user"}};
  EXPECT_EQ(run({"run", "debian:12", "ls"}), 125);
  EXPECT_EQ(error_, "create exec: no such user\n");
  EXPECT_THAT(methods(), ElementsAre("CreateSandbox", "CreateExec", "DeleteSandbox"));
}

TEST_F(RunCommand, ADeletionThatFailsIsReported) {
  daemon_.next_statuses = {
      grpc::Status::OK, grpc::Status::OK, grpc::Status::OK, {grpc::INTERNAL, "no luck"}};
  EXPECT_EQ(run({"run", "--name", "box-1", "debian:12", "ls"}), 0);
  EXPECT_THAT(error_, testing::EndsWith("delete sandbox: no luck\n"
                                        "  Delete sandbox:     agbox rm box-1\n"));
}

TEST_F(RunCommand, KeepLeavesIt) {
  EXPECT_EQ(run({"run", "--keep", "--name", "box-1", "debian:12", "ls"}), 0);
  EXPECT_EQ(deletions(), 0);
  EXPECT_THAT(error_, testing::EndsWith("Sandbox box-1 is kept.\n"
                                        "  Run a command:      agbox exec box-1 COMMAND\n"
                                        "  Delete sandbox:     agbox rm box-1\n"));
  EXPECT_EQ(run({"run", "--keep", "--rm", "debian:12", "ls"}), 125);
}

TEST_F(RunCommand, DetachedItPrintsTheSandboxAndLeavesIt) {
  EXPECT_EQ(run({"run", "-d", "--name", "box-1", "debian:12", "sleep", "9"}), 0);
  EXPECT_EQ(out_, "box-1\n");
  EXPECT_EQ(error_, "");
  EXPECT_THAT(methods(), ElementsAre("CreateSandbox", "CreateExec"));
  // Nothing would delete it.
  EXPECT_EQ(run({"run", "-d", "--rm", "debian:12", "sleep", "9"}), 125);
}

TEST_F(RunCommand, TheSandboxHasALeaseAndIsHeldWhileTheCommandRuns) {
  daemon_.sandbox.mutable_lease_ttl()->set_seconds(10);
  EXPECT_EQ(run({"run", "--name", "box-1", "debian:12", "ls"}), 0);
  EXPECT_EQ(out_, "out\n");
  EXPECT_EQ(error_, "err\n");
  EXPECT_THAT(daemon_.calls().front(), HasSubstr("lease_ttl { seconds: 10 }"));
  EXPECT_THAT(daemon_.calls(), Contains("HoldSandbox sandbox_id: \"box-1\""));
  EXPECT_EQ(daemon_.calls().back(), "DeleteSandbox sandbox_id: \"box-1\"");
  EXPECT_TRUE(daemon_.wait_for_holds(0));
}

TEST_F(RunCommand, WhatIsKeptHasNoLease) {
  EXPECT_EQ(run({"run", "--keep", "debian:12", "ls"}), 0);
  EXPECT_THAT(daemon_.calls().front(), Not(HasSubstr("lease_ttl")));
  EXPECT_EQ(run({"run", "-d", "debian:12", "ls"}), 0);
  EXPECT_THAT(daemon_.calls(), Not(Contains(HasSubstr("lease_ttl"))));
  EXPECT_THAT(methods(), Not(Contains("HoldSandbox")));
}

TEST_F(RunCommand, AHoldThatIsRefusedEndsIt) {
  daemon_.sandbox.mutable_lease_ttl()->set_seconds(10);
  daemon_.hold_statuses = {{grpc::RESOURCE_EXHAUSTED, "too many"}};
  EXPECT_EQ(run({"run", "--name", "box-1", "debian:12", "ls"}), 125);
  EXPECT_EQ(error_, "hold sandbox: too many\n");
  EXPECT_THAT(methods(), Not(Contains("CreateExec")));
  EXPECT_EQ(methods().back(), "DeleteSandbox");
}

TEST_F(RunCommand, ADeletionThatFailsIsLeftToTheLease) {
  daemon_.sandbox.mutable_lease_ttl()->set_seconds(10);
  daemon_.next_statuses = {
      grpc::Status::OK, grpc::Status::OK, grpc::Status::OK, {grpc::INTERNAL, "no luck"}};
  EXPECT_EQ(run({"run", "--name", "box-1", "debian:12", "ls"}), 0);
  EXPECT_THAT(error_, testing::EndsWith("delete sandbox: no luck\n  agboxd deletes it by itself "
                                        "in about 10s, or when it runs again.\n"));
}

TEST_F(RunCommand, TimingNamesEveryStep) {
  EXPECT_EQ(run({"run", "--timing", "debian:12", "ls"}), 0);
  EXPECT_THAT(error_, MatchesRegex("err\nTiming:\n  create +[0-9]+\\.[0-9]{3}s\n"
                                   "  ready +[0-9.]+s\n  command +[0-9.]+s\n  delete +[0-9.]+s\n"
                                   "  total +[0-9.]+s\n"));
}

class InterruptedRunCommand : public RunCommand, public testing::WithParamInterface<int> {};

TEST_P(InterruptedRunCommand, ASignalCancelsTheCommandAndDeletesTheSandbox) {
  daemon_.run_until_cancelled = true;
  const auto person = interrupt_at(daemon_, "ReadExecOutput", GetParam());
  EXPECT_EQ(run({"run", "debian:12", "sleep", "99"}), 128 + GetParam());
  EXPECT_THAT(methods(), Contains("CancelExec"));
  EXPECT_EQ(methods().back(), "DeleteSandbox");
}

TEST_P(InterruptedRunCommand, ASignalBeforeItIsReadyDeletesTheSandbox) {
  daemon_.sandbox = box_in(v1::SANDBOX_STATE_PENDING);
  daemon_.keep_streams_open = true;
  const auto person = interrupt_at(daemon_, "SubscribeSandboxEvents", GetParam());
  EXPECT_EQ(run({"run", "debian:12", "ls"}), 128 + GetParam());
  EXPECT_THAT(methods(), Not(Contains("CreateExec")));
  EXPECT_EQ(methods().back(), "DeleteSandbox");
}

INSTANTIATE_TEST_SUITE_P(Signals, InterruptedRunCommand, testing::Values(SIGINT, SIGTERM, SIGHUP));

}  // namespace
}  // namespace agbox::cli
