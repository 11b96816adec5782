// SPDX-License-Identifier: Apache-2.0
// agbox exec get, cancel and list, and agbox logs.
#include <gmock/gmock.h>

#include "unit/cli/commands_fixture.h"

namespace agbox::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

v1::ExecStatus exec(const std::string& id, v1::ExecState state) {
  v1::ExecStatus out;
  out.set_exec_id(id);
  out.set_sandbox_id("box-1");
  out.set_state(state);
  out.add_command("sh");
  out.add_command("-c");
  out.add_command("echo\na\x1b");
  return out;
}

class ExecShow : public Commands {
 protected:
  static void prepare(test::ScriptedDaemon& daemon) {
    daemon.exec = exec("exec-1", v1::EXEC_STATE_RUNNING);
    daemon.exec.set_last_event_sequence(4);
    daemon.exec_stdout = "out";
    daemon.exec_stderr = "err";
  }
  static grpc::Status terminal() {
    return test::ErrorInfoBytes{.code = grpc::FAILED_PRECONDITION,
                                .message = "exec exec-1 is already terminal",
                                .reason = "EXEC_ALREADY_TERMINAL",
                                .metadata = {{"exec_id", "exec-1"}}}
        .status();
  }
  static grpc::Status not_found() {
    return test::ErrorInfoBytes{.code = grpc::NOT_FOUND,
                                .message = "exec nope was not found",
                                .reason = "EXEC_NOT_FOUND",
                                .metadata = {{"exec_id", "nope"}}}
        .status();
  }

  test::ScriptedDaemon daemon_{socket(), prepare};
};

TEST_F(ExecShow, GetShowsALinePerFact) {
  EXPECT_EQ(run({"exec", "get", "exec-1"}), 0);
  EXPECT_EQ(out_, "exec_id=exec-1\nsandbox_id=box-1\nstate=Running\ncommand=sh -c echo a\\x1b\n");
  daemon_.exec.set_state(v1::EXEC_STATE_FAILED);
  daemon_.exec.set_cwd("/tmp");
  daemon_.exec.set_exit_code(3);
  daemon_.exec.set_error("exit code 3");
  daemon_.exec.mutable_started_at()->set_seconds(1'700'000'000);
  daemon_.exec.mutable_ended_at()->set_seconds(1'700'000'001);
  daemon_.exec.set_output_truncated(true);
  daemon_.exec.set_stdout_log_path("/logs/out");
  daemon_.exec.set_stderr_log_path("/logs/err");
  EXPECT_EQ(run({"exec", "get", "exec-1"}), 0);
  EXPECT_EQ(out_,
            "exec_id=exec-1\nsandbox_id=box-1\nstate=Failed\ncommand=sh -c echo a\\x1b\n"
            "cwd=/tmp\nexit_code=3\nerror=exit code 3\nstarted_at=2023-11-14T22:13:20Z\n"
            "ended_at=2023-11-14T22:13:21Z\noutput_truncated=true\nstdout_log_path=/logs/out\n"
            "stderr_log_path=/logs/err\n");
}

TEST_F(ExecShow, GetAsJson) {
  EXPECT_EQ(run({"exec", "get", "exec-1", "--json"}), 0);
  EXPECT_THAT(out_, StartsWith("{\n  \"exec\": {\n    \"exec_id\": \"exec-1\",\n"
                               "    \"sandbox_id\": \"box-1\",\n"
                               "    \"state\": \"EXEC_STATE_RUNNING\",\n    \"command\": [\n"));
  EXPECT_THAT(out_, HasSubstr("\"last_event_sequence\": \"4\""));
}

TEST_F(ExecShow, GetNamesAnUnknownExec) {
  daemon_.status = not_found();
  EXPECT_EQ(run({"exec", "get", "nope"}), 1);
  EXPECT_EQ(error_, "get exec: Exec nope not found.\n");
}

TEST_F(ExecShow, ListShowsWhatRuns) {
  EXPECT_EQ(run({"exec", "list"}), 0);
  EXPECT_EQ(out_,
            "EXEC ID  SANDBOX ID  STATE    COMMAND\n"
            "exec-1   box-1       Running  sh -c echo a\\x1b\n");
  EXPECT_EQ(run({"exec", "list", "box-1", "--json"}), 0);
  EXPECT_THAT(out_, StartsWith("{\n  \"execs\": [\n"));
  EXPECT_THAT(daemon_.calls(),
              ElementsAre("ListActiveExecs", "ListActiveExecs sandbox_id: \"box-1\""));
}

TEST_F(ExecShow, ListOfAnUnknownSandboxFails) {
  daemon_.exec.Clear();
  daemon_.next_statuses = {grpc::Status::OK, unknown("nosuch")};
  EXPECT_EQ(run({"exec", "list", "nosuch"}), 1);
  EXPECT_EQ(out_, "");
  EXPECT_EQ(error_, "list active execs: Sandbox nosuch not found.\n");
  EXPECT_EQ(run({"exec", "list", "box-1"}), 0) << "one that exists, without execs";
  EXPECT_EQ(out_, "EXEC ID  SANDBOX ID  STATE  COMMAND\n");
}

TEST_F(ExecShow, ListAllReadsEveryPage) {
  daemon_.exec_pages.resize(2);
  *daemon_.exec_pages[0].add_execs() = exec("exec-1", v1::EXEC_STATE_FINISHED);
  *daemon_.exec_pages[1].add_execs() = exec("exec-2", v1::EXEC_STATE_RUNNING);
  EXPECT_EQ(run({"exec", "list", "--all", "box-1"}), 0);
  EXPECT_THAT(out_, HasSubstr("exec-1   box-1       Finished  "));
  EXPECT_THAT(out_, HasSubstr("exec-2   box-1       Running   "));
  EXPECT_THAT(daemon_.calls(), ElementsAre("ListExecs sandbox_id: \"box-1\"",
                                           "ListExecs sandbox_id: \"box-1\" page_token: \"1\""));
}

TEST_F(ExecShow, ListAllOfEverySandbox) {
  daemon_.pages.resize(1);
  for (const std::string id : {"box-1", "box-2"}) {
    daemon_.pages[0].add_sandboxes()->set_sandbox_id(id);
  }
  EXPECT_EQ(run({"exec", "list", "-a"}), 0);
  EXPECT_THAT(daemon_.calls(),
              ElementsAre("ListSandboxes include_deleted: true", "ListExecs sandbox_id: \"box-1\"",
                          "ListExecs sandbox_id: \"box-2\""));
}

TEST_F(ExecShow, CancelWaitsUntilItIsGone) {
  v1::SandboxEvent event;
  event.set_sequence(5);
  event.mutable_exec()->set_exec_id("exec-1");
  event.mutable_exec()->set_exec_state(v1::EXEC_STATE_CANCELLED);
  daemon_.events = {event};
  daemon_.run_until_cancelled = true;
  EXPECT_EQ(run({"exec", "cancel", "exec-1"}), 0);
  EXPECT_EQ(out_, "");
  EXPECT_THAT(error_, testing::MatchesRegex("Waiting for exec exec-1 to be cancelled...\n"
                                            "Exec cancelled in [0-9]+\\.[0-9]s\\.\n"));
}

TEST_F(ExecShow, CancelOfWhatHasEndedIsDone) {
  daemon_.cancel_status = terminal();
  EXPECT_EQ(run({"exec", "cancel", "exec-1"}), 0);
  EXPECT_EQ(error_, "");
  daemon_.cancel_status = not_found();
  EXPECT_EQ(run({"exec", "cancel", "nope"}), 1);
  EXPECT_EQ(error_, "cancel exec: Exec nope not found.\n");
}

TEST_F(ExecShow, CancelSaysWhenItEndedByItself) {
  daemon_.exec.set_state(v1::EXEC_STATE_FINISHED);
  EXPECT_EQ(run({"exec", "cancel", "exec-1"}), 0);
  EXPECT_THAT(error_, HasSubstr("Exec exec-1 ended before it was cancelled: Finished.\n"));
}

TEST_F(ExecShow, LogsShowsBothStreamsWhereTheyBelong) {
  EXPECT_EQ(run({"logs", "exec-1"}), 0);
  EXPECT_EQ(out_, "out");
  EXPECT_EQ(error_, "err");
  EXPECT_THAT(daemon_.calls(), Not(Contains(HasSubstr("follow"))));
}

TEST_F(ExecShow, LogsOfOneStreamIsTheResult) {
  EXPECT_EQ(run({"logs", "--stream", "stderr", "exec-1"}), 0);
  EXPECT_EQ(out_, "err");
  EXPECT_EQ(run({"logs", "--stream", "stdout", "exec-1"}), 0);
  EXPECT_EQ(out_, "out");
  EXPECT_EQ(error_, "");
  EXPECT_EQ(run({"logs", "--stream", "both", "exec-1"}), 2);
  EXPECT_EQ(error_, "--stream must be \"stdout\" or \"stderr\"\n");
}

TEST_F(ExecShow, LogsSaysThatOutputIsNotWhole) {
  daemon_.exec.set_output_truncated(true);
  EXPECT_EQ(run({"logs", "--stream", "stdout", "exec-1"}), 0);
  EXPECT_THAT(error_, StartsWith("warning: output of exec exec-1 is incomplete: "));
}

TEST_F(ExecShow, FollowedLogsEndWithCtrlCAndCancelNothing) {
  daemon_.keep_streams_open = true;
  const auto person = interrupt_at(daemon_, "ReadExecOutput");
  EXPECT_EQ(run({"logs", "-f", "exec-1"}), 130);
  EXPECT_THAT(daemon_.calls(), Not(Contains(StartsWith("CancelExec"))));
}

TEST_F(ExecShow, LogsNamesAnUnknownExec) {
  daemon_.status = not_found();
  daemon_.exec_stdout = daemon_.exec_stderr = "";
  EXPECT_EQ(run({"logs", "nope"}), 1);
  EXPECT_EQ(error_, "read exec output: Exec nope not found.\n");
}

}  // namespace
}  // namespace agbox::cli
