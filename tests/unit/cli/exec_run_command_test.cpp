// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include "unit/cli/commands_fixture.h"

namespace agbox::cli {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

class ExecRunCommand : public Commands {
 protected:
  static void prepare(test::ScriptedDaemon& daemon) {
    daemon.exec.set_exec_id("exec-1");
    daemon.exec.set_sandbox_id("box-1");
    daemon.exec.set_state(v1::EXEC_STATE_FINISHED);
    daemon.exec_stdout = std::string("out\0\x1b[2J\xff", 9);
    daemon.exec_stderr = "complaints\n";
  }
  void ends_as(v1::ExecState state, int code, const std::string& error) {
    daemon_.exec.set_state(state);
    daemon_.exec.set_exit_code(code);
    daemon_.exec.set_error(error);
    daemon_.exec_stderr = "";
  }

  test::ScriptedDaemon daemon_{socket(), prepare};
};

TEST_F(ExecRunCommand, OutputIsPassedOnByteByByte) {
  EXPECT_EQ(run({"exec", "run", "box-1", "--", "cat", "-n", "--", ""}), 0);
  EXPECT_EQ(out_, daemon_.exec_stdout);
  EXPECT_EQ(error_, daemon_.exec_stderr);
  EXPECT_THAT(daemon_.calls().front(),
              StartsWith("CreateExec sandbox_id: \"box-1\" command: \"cat\" command: \"-n\" "
                         "command: \"--\" command: \"\" exec_id: \""));
}

TEST_F(ExecRunCommand, SandboxExecIsTheSameCommand) {
  EXPECT_EQ(run({"sandbox", "exec", "box-1", "--cwd", "/tmp", "--env-overrides", "A=1=2",
                 "--exec-id", "mine", "--", "env"}),
            0);
  EXPECT_EQ(out_, daemon_.exec_stdout);
  EXPECT_EQ(daemon_.calls().front(),
            "CreateExec sandbox_id: \"box-1\" command: \"env\" cwd: \"/tmp\" env_overrides { key: "
            "\"A\" value: \"1=2\" } exec_id: \"mine\"");
}

TEST_F(ExecRunCommand, TheExitCodeIsTheCommands) {
  ends_as(v1::EXEC_STATE_FAILED, 3, "exit code 3");
  EXPECT_EQ(run({"exec", "run", "box-1", "--", "false"}), 3);
  EXPECT_EQ(error_, "");
}

TEST_F(ExecRunCommand, WhatTheExitCodeDoesNotSayIsSaid) {
  ends_as(v1::EXEC_STATE_FAILED, 127, "nope: not found");
  EXPECT_EQ(run({"exec", "run", "box-1", "--", "nope"}), 127);
  EXPECT_EQ(error_, "exec exec-1 ended as Failed: nope: not found\n");
  ends_as(v1::EXEC_STATE_FAILED, 0, "the container exited");
  EXPECT_EQ(run({"exec", "run", "box-1", "--", "true"}), 125);
  EXPECT_EQ(error_, "exec exec-1 ended as Failed: the container exited\n");
  ends_as(v1::EXEC_STATE_CANCELLED, 0, "");
  EXPECT_EQ(run({"exec", "run", "box-1", "--", "true"}), 125);
  EXPECT_EQ(error_, "exec exec-1 ended as Cancelled\n");
}

TEST_F(ExecRunCommand, AReasonThatIsInTheOutputIsNotRepeated) {
  ends_as(v1::EXEC_STATE_FAILED, 127, "nope: not found");
  daemon_.exec_stderr = std::string(5000, 'x') + "\nnope: not found\n";
  EXPECT_EQ(run({"exec", "run", "box-1", "--", "nope"}), 127);
  EXPECT_EQ(error_, daemon_.exec_stderr);
}

TEST_F(ExecRunCommand, OutputThatIsNotWholeIsSaidInOneSentence) {
  daemon_.exec.set_output_truncated(true);
  daemon_.exec_stderr = "";
  EXPECT_EQ(run({"exec", "run", "box-1", "--", "yes"}), 0);
  EXPECT_THAT(error_, StartsWith("warning: output of exec exec-1 is incomplete: "));
  EXPECT_EQ(std::ranges::count(error_, '\n'), 1);
}

TEST_F(ExecRunCommand, DetachedItOnlyBegins) {
  EXPECT_EQ(run({"exec", "run", "-d", "box-1", "--", "sleep", "9"}), 0);
  EXPECT_EQ(out_, "exec-1\n");
  EXPECT_EQ(run({"exec", "run", "--json", "box-1", "--", "sleep", "9"}), 0);
  EXPECT_EQ(out_,
            "{\n  \"exec_id\": \"exec-1\",\n  \"stdout_log_path\": \"\",\n"
            "  \"stderr_log_path\": \"\"\n}\n");
  EXPECT_THAT(daemon_.calls(), testing::SizeIs(2));
}

TEST_F(ExecRunCommand, SaysWhatIsMissing) {
  const std::string no_command = "exec run requires -- <command> [args...]\n";
  const std::string no_sandbox = "exec run requires <sandbox_id> -- <command> [args...]\n";
  const std::pair<std::vector<std::string>, std::string> rows[] = {
      {{"exec", "run"}, no_command},
      {{"exec", "run", "box-1"}, no_command},
      {{"exec", "run", "box-1", "ls", "-la"}, no_command},
      {{"exec", "run", "box-1", "--"}, no_command},
      {{"exec", "run", "--", "ls"}, no_sandbox},
      {{"exec", "run", "box-1", "box-2", "--", "ls"}, no_sandbox},
      {{"sandbox", "exec", "--", "ls"},
       "sandbox exec requires <sandbox_id> -- <command> [args...]\n"},
      {{"exec", "run", "box-1", "--env-overrides", "A", "--", "ls"},
       "--env-overrides must be in key=value form\n"},
  };
  for (const auto& [arguments, sentence] : rows) {
    EXPECT_EQ(run(arguments), 2);
    EXPECT_EQ(error_, sentence);
  }
  EXPECT_EQ(run({"exec", "run", "--nope", "box-1", "--", "ls"}), 2);
  EXPECT_THAT(error_, StartsWith("Error: unknown flag: --nope\n"));
  EXPECT_EQ(run({"exec"}), 2);
  EXPECT_EQ(error_,
            "exec command requires a subcommand\n"
            "available subcommands: run, get, cancel, list, wait\n");
  EXPECT_EQ(daemon_.calls().size(), 0);
}

TEST_F(ExecRunCommand, HelpShowsThatTheCommandIsNeeded) {
  EXPECT_EQ(run({"exec", "run", "--help"}), 0);
  EXPECT_THAT(out_, HasSubstr("  agbox exec run <sandbox_id> [flags] -- <command> [args...]\n"));
}

TEST_F(ExecRunCommand, ARefusalIsExplained) {
  daemon_.status = test::ErrorInfoBytes{.code = grpc::FAILED_PRECONDITION,
                                        .message = "sandbox box-1 is not ready",
                                        .reason = "SANDBOX_NOT_READY",
                                        .metadata = {{"sandbox_id", "box-1"}}}
                       .status();
  EXPECT_EQ(run({"exec", "run", "box-1", "--", "ls"}), 1);
  EXPECT_EQ(error_, "create exec: Sandbox box-1 is not ready.\n");
  daemon_.status = test::ErrorInfoBytes{.code = grpc::FAILED_PRECONDITION,
                                        .message =
                                            "sandbox box-1 is not ready: it is stopped "
                                            "(idle_ttl); resume it",
                                        .reason = "SANDBOX_NOT_READY",
                                        .metadata = {{"sandbox_id", "box-1"}}}
                       .status();
  EXPECT_EQ(run({"exec", "run", "box-1", "--", "ls"}), 1);
  EXPECT_EQ(error_,
            "create exec: sandbox box-1 is not ready: it is stopped (idle_ttl); resume it\n");
}

class InterruptedRun : public ExecRunCommand, public testing::WithParamInterface<int> {};

TEST_P(InterruptedRun, ASignalCancelsTheExec) {
  daemon_.run_until_cancelled = true;
  const auto person = interrupt_at(daemon_, "ReadExecOutput", GetParam());
  EXPECT_EQ(run({"exec", "run", "box-1", "--", "sleep", "99"}), 128 + GetParam());
  EXPECT_THAT(daemon_.calls(), Contains("CancelExec exec_id: \"exec-1\""));
  EXPECT_EQ(out_, daemon_.exec_stdout);
}

INSTANTIATE_TEST_SUITE_P(Signals, InterruptedRun, testing::Values(SIGINT, SIGTERM));

TEST_F(ExecRunCommand, ACancellationThatNobodyTakesIsSaid) {
  daemon_.run_until_cancelled = true;
  daemon_.cancel_status = {grpc::INTERNAL, "no"};
  const auto person = interrupt_at(daemon_, "ReadExecOutput");
  EXPECT_EQ(run({"exec", "run", "box-1", "--", "sleep", "99"}), 1);
  // Between these two the command's own words may come.
  EXPECT_THAT(error_, HasSubstr("cancel exec: no\n"));
  EXPECT_THAT(error_, HasSubstr("Exec exec-1 keeps running.\n"));
}

TEST_F(ExecRunCommand, AClosedStdoutCancelsTheExec) {
  daemon_.run_until_cancelled = true;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[0]);
  const auto former = ::signal(SIGPIPE, SIG_IGN);
  CapturedConsole captured;
  {
    const UniqueFd out(ends[1]);
    Console console(out.get(), captured.error_fd());
    CommandLine line(all_commands());
    EXPECT_EQ(line.run({"exec", "run", "box-1", "--", "yes"}, console), 1);
  }
  ::signal(SIGPIPE, former);
  EXPECT_EQ(captured.error(), daemon_.exec_stderr) << "head has what it wants";
  EXPECT_THAT(daemon_.calls(), Contains(StartsWith("CancelExec")));
}

}  // namespace
}  // namespace agbox::cli
