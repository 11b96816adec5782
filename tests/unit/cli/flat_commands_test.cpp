// SPDX-License-Identifier: Apache-2.0
// The commands as docker's users type them: exec, ps, stop, start, rm, inspect.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "unit/cli/commands_fixture.h"

namespace agbox::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

class FlatCommands : public Commands {
 protected:
  static void prepare(test::ScriptedDaemon& daemon) {
    daemon.sandbox = box_in(v1::SANDBOX_STATE_READY);
    daemon.exec.set_exec_id("exec-1");
    daemon.exec.set_sandbox_id("box-1");
    daemon.exec.set_state(v1::EXEC_STATE_FINISHED);
    daemon.exec_stdout = "out\n";
  }
  // The next call finds no such sandbox; these exist.
  void lists(const std::vector<std::string>& ids) {
    daemon_.next_statuses = {unknown("nope")};
    daemon_.pages.assign(1, {});
    for (const std::string& id : ids) {
      auto& sandbox = *daemon_.pages.front().add_sandboxes();
      sandbox = box_in(v1::SANDBOX_STATE_READY);
      sandbox.set_sandbox_id(id);
    }
  }
  // What the daemon was asked, without the ID that agbox chose for an exec.
  std::string create_exec() const {
    for (const std::string& call : daemon_.calls()) {
      if (call.starts_with("CreateExec")) return call.substr(0, call.find(" exec_id"));
    }
    return "none";
  }

  test::ScriptedDaemon daemon_{socket(), prepare};
};

TEST_F(FlatCommands, ExecTakesItsCommandAsDockerDoes) {
  const std::vector<std::vector<std::string>> rows = {
      {"exec", "box-1", "ls", "-l", "--", "-e"},
      {"exec", "box-1", "--", "ls", "-l", "--", "-e"},
      {"exec", "--", "box-1", "ls", "-l", "--", "-e"},
      {"exec", "--timeout", "0s1ns", "box-1", "ls", "-l", "--", "-e"},
  };
  for (const auto& row : rows) {
    const std::size_t calls = daemon_.calls().size();
    EXPECT_EQ(run(row), 0) << error_;
    EXPECT_EQ(out_, "out\n");
    ASSERT_EQ(daemon_.calls().at(calls), "GetSandbox sandbox_id: \"box-1\"");
    EXPECT_THAT(daemon_.calls().at(calls + 1),
                StartsWith("CreateExec sandbox_id: \"box-1\" command: \"ls\" command: \"-l\" "
                           "command: \"--\" command: \"-e\""));
  }
}

TEST_F(FlatCommands, FlagsOfExecComeBeforeItsCommand) {
  EXPECT_EQ(run({"exec", "-eA=1", "-e", "B=2", "-w", "/tmp", "box-1", "-u", "root", "env", "-u"}),
            0);
  EXPECT_THAT(daemon_.calls().at(1),
              AllOf(HasSubstr("command: \"env\" command: \"-u\" cwd: \"/tmp\""),
                    HasSubstr("key: \"A\" value: \"1\""), HasSubstr("key: \"B\" value: \"2\""),
                    HasSubstr("user: \"root\"")));
  EXPECT_EQ(run({"exec", "-du", "root", "box-1", "list"}), 0) << "list is the command here";
  EXPECT_EQ(out_, "exec-1\n");
}

TEST_F(FlatCommands, ExecReturnsDockersExitCodes) {
  daemon_.exec.set_state(v1::EXEC_STATE_FAILED);
  daemon_.exec.set_exit_code(3);
  daemon_.exec.set_error("exit code 3");
  EXPECT_EQ(run({"exec", "box-1", "false"}), 3);
  EXPECT_EQ(run({"exec", "--nope", "box-1", "ls"}), 125);
  EXPECT_THAT(error_, StartsWith("Error: unknown flag: --nope\n\nUsage:\n  agbox exec <sandbox_id> "
                                 "[flags] [--] [<command> [args...]]\n  agbox exec [command]\n"));
  EXPECT_EQ(run({"exec", "-e", "A", "box-1", "ls"}), 125);
  daemon_.status = unknown("nope");
  EXPECT_EQ(run({"exec", "nope", "ls"}), 125);
  EXPECT_EQ(error_, "create exec: Sandbox nope not found.\n");
}

TEST_F(FlatCommands, ExecAloneIsStillTheParentOfItsSubcommands) {
  EXPECT_EQ(run({"exec"}), 2);
  EXPECT_THAT(error_, StartsWith("exec command requires a subcommand\navailable subcommands: run"));
  EXPECT_EQ(run({"exec", "lits"}), 2);
  EXPECT_EQ(error_,
            "Error: unknown command \"lits\" for \"agbox exec\"\n\n"
            "Did you mean this?\n  agbox exec list\n");
  EXPECT_EQ(run({"exec", "-i", "run", "box-1", "--", "ls"}), 2);
  EXPECT_THAT(error_, StartsWith("Error: --interactive is a flag of \"agbox exec\", not of "
                                 "\"agbox exec run\"\n"));
  EXPECT_EQ(run({"exec", "-i", "list"}), 2);
  EXPECT_THAT(error_, StartsWith("Error: --interactive is a flag of \"agbox exec\", not of "
                                 "\"agbox exec list\"\n"));
  EXPECT_THAT(daemon_.calls(), Not(Contains(StartsWith("CreateExec"))));
}

TEST_F(FlatCommands, ABeginningOfAnIdIsEnough) {
  lists({"other", "box-1"});
  EXPECT_EQ(run({"exec", "bo", "ls"}), 0);
  EXPECT_EQ(create_exec(), "CreateExec sandbox_id: \"box-1\" command: \"ls\"");
  lists({"box-2", "box-1"});
  EXPECT_EQ(run({"rm", "bo"}), 1);
  EXPECT_EQ(error_,
            "delete sandbox: \"bo\" is the beginning of 2 sandbox IDs; type more of it:\n"
            "  box-2\n  box-1\n");
  lists({"box-2"});
  EXPECT_EQ(run({"stop", "boo"}), 1);
  EXPECT_EQ(error_, "stop sandbox: Sandbox nope not found.\n") << "as for a whole ID";
  EXPECT_THAT(daemon_.calls(), Not(Contains(StartsWith("StopSandbox"))));
}

// As of a variable of a shell that is not set: every ID begins with it.
TEST_F(FlatCommands, NoBeginningIsNone) {
  for (const char* command : {"rm", "stop", "start"}) {
    lists({"box-1"});
    EXPECT_EQ(run({command, ""}), 1);
  }
  const auto changes = testing::AnyOf(StartsWith("DeleteSandbox"), StartsWith("StopSandbox"),
                                      StartsWith("ResumeSandbox"));
  EXPECT_THAT(daemon_.calls(), Not(Contains(changes)));
}

TEST_F(FlatCommands, TheOtherSpellingsTakeWholeIdsOnly) {
  lists({"box-1"});
  EXPECT_EQ(run({"sandbox", "stop", "bo"}), 1);
  EXPECT_EQ(error_, "stop sandbox: Sandbox nope not found.\n");
  EXPECT_THAT(daemon_.calls(), ElementsAre("StopSandbox sandbox_id: \"bo\""));
}

TEST_F(FlatCommands, StopAndStartTakeSeveral) {
  moves(daemon_, v1::SANDBOX_STATE_READY, v1::SANDBOX_STOPPED, v1::SANDBOX_STATE_STOPPED);
  daemon_.sandboxes["box-2"] = box_in(v1::SANDBOX_STATE_READY);
  daemon_.sandboxes["box-2"].set_sandbox_id("box-2");
  EXPECT_EQ(run({"stop", "box-1", "box-2"}), 0);
  EXPECT_THAT(error_, MatchesRegex("Waiting for 2 sandbox\\(es\\) to be stopped\\.\\.\\.\n"
                                   "2 sandbox\\(es\\) stopped in [0-9]+\\.[0-9]s\\.\n"));
  EXPECT_THAT(daemon_.calls(), Contains("StopSandbox sandbox_id: \"box-2\""));
  EXPECT_EQ(run({"start"}), 2);
  EXPECT_EQ(error_, "start requires <sandbox_id> or at least one --label\n");
  EXPECT_EQ(run({"start", "--label", "a"}), 2);
  EXPECT_EQ(error_, "--label must be in key=value form\n");
}

TEST_F(FlatCommands, ARefusalForOneDoesNotKeepTheOthers) {
  moves(daemon_, v1::SANDBOX_STATE_READY, v1::SANDBOX_STOPPED, v1::SANDBOX_STATE_STOPPED);
  daemon_.sandboxes["box-2"] = box_in(v1::SANDBOX_STATE_READY);
  daemon_.sandboxes["box-2"].set_sandbox_id("box-2");
  daemon_.next_statuses = {grpc::Status::OK, grpc::Status::OK, {grpc::INTERNAL, "no luck"}};
  EXPECT_EQ(run({"stop", "box-1", "box-2"}), 1);
  EXPECT_THAT(error_, StartsWith("stop sandbox: no luck\nWaiting for 1 sandbox(es) to be stopped"));
  EXPECT_THAT(error_, HasSubstr("\n1 of 2 sandbox(es) stopped in "));
}

TEST_F(FlatCommands, ByLabelOnlyThoseThatCanBeStopped) {
  moves(daemon_, v1::SANDBOX_STATE_READY, v1::SANDBOX_STOPPED, v1::SANDBOX_STATE_STOPPED);
  daemon_.pages.resize(1);
  *daemon_.pages[0].add_sandboxes() = box_in(v1::SANDBOX_STATE_READY);
  *daemon_.pages[0].add_sandboxes() = box_in(v1::SANDBOX_STATE_STOPPED);
  daemon_.pages[0].mutable_sandboxes(1)->set_sandbox_id("box-2");
  EXPECT_EQ(run({"stop", "-l", "a=b"}), 0);
  EXPECT_THAT(daemon_.calls().front(), StartsWith("ListSandboxes label_selector { key: \"a\""));
  EXPECT_THAT(daemon_.calls(), Contains("StopSandbox sandbox_id: \"box-1\""));
  EXPECT_THAT(daemon_.calls(), Not(Contains("StopSandbox sandbox_id: \"box-2\"")));
  daemon_.pages[0].clear_sandboxes();
  EXPECT_EQ(run({"stop", "-l", "a=b"}), 0);
  EXPECT_EQ(error_, "No sandboxes matched the label selector.\n");
}

TEST_F(FlatCommands, RmTakesSeveralAndDockersForce) {
  moves(daemon_, v1::SANDBOX_STATE_DELETING, v1::SANDBOX_DELETED, v1::SANDBOX_STATE_DELETED);
  daemon_.sandboxes["box-2"] = box_in(v1::SANDBOX_STATE_DELETING);
  daemon_.sandboxes["box-2"].set_sandbox_id("box-2");
  EXPECT_EQ(run({"rm", "-f", "box-1", "box-2"}), 0);
  EXPECT_THAT(error_, MatchesRegex("Waiting for 2 sandbox\\(es\\) to be deleted\\.\\.\\.\n"
                                   "2 sandbox\\(es\\) deleted in [0-9]+\\.[0-9]s\\.\n"));
  EXPECT_THAT(daemon_.calls(), Contains("DeleteSandbox sandbox_id: \"box-2\""));
  EXPECT_EQ(run({"rm"}), 2);
  EXPECT_EQ(error_, "rm requires <sandbox_id> or at least one --label\n");
}

TEST_F(FlatCommands, PruneDeletesWhatDoesNotRunAndAsksFirst) {
  moves(daemon_, v1::SANDBOX_STATE_DELETING, v1::SANDBOX_DELETED, v1::SANDBOX_STATE_DELETED);
  daemon_.pages.resize(1);
  for (const auto& [id, state] :
       {std::pair("box-1", v1::SANDBOX_STATE_STOPPED), std::pair("box-2", v1::SANDBOX_STATE_READY),
        std::pair("box-3", v1::SANDBOX_STATE_FAILED)}) {
    auto& sandbox = *daemon_.pages[0].add_sandboxes();
    sandbox.set_sandbox_id(id);
    sandbox.set_state(state);
  }
  // The tests may be run in a terminal.
  const UniqueFd terminal(::dup(STDIN_FILENO));
  const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::dup2(nothing.get(), STDIN_FILENO), STDIN_FILENO);
  EXPECT_EQ(run({"prune"}), 2);
  ::dup2(terminal.get(), STDIN_FILENO);
  EXPECT_EQ(error_,
            "These sandboxes and their files would be deleted:\n  box-1  Stopped\n  box-3  Failed\n"
            "prune asks first, and stdin is no terminal: use --force\n");
  EXPECT_EQ(run({"prune", "-f", "-l", "a=b"}), 0);
  EXPECT_THAT(error_, StartsWith("Waiting for 2 sandbox(es) to be deleted...\n"));
  EXPECT_THAT(daemon_.calls(),
              Contains("ListSandboxes label_selector { key: \"a\" value: \"b\" }"));
  EXPECT_THAT(daemon_.calls(), Not(Contains("DeleteSandbox sandbox_id: \"box-2\"")));
  daemon_.pages[0].clear_sandboxes();
  EXPECT_EQ(run({"prune"}), 0);
  EXPECT_EQ(error_, "No sandbox is stopped or failed.\n");
}

TEST_F(FlatCommands, PsIsSandboxList) {
  EXPECT_EQ(run({"ps"}), 0);
  const std::string listed = out_;
  EXPECT_EQ(run({"sandbox", "list"}), 0);
  EXPECT_EQ(out_, listed);
  EXPECT_EQ(run({"ps", "-aq"}), 0);
  EXPECT_EQ(out_, "box-1\n");
  EXPECT_EQ(daemon_.calls().back(), "ListSandboxes include_deleted: true");
}

TEST_F(FlatCommands, FormatPrintsFieldsForScripts) {
  (*daemon_.sandbox.mutable_labels())["a"] = "1\t2";
  (*daemon_.sandbox.mutable_labels())["b"] = "x";
  EXPECT_EQ(
      run({"ps", "--format", "sandbox_id,state,last_event_sequence,labels.a,labels.c,created_at"}),
      0);
  EXPECT_EQ(out_, "box-1\tSANDBOX_STATE_READY\t4\t1 2\t\t\n");
  EXPECT_EQ(run({"ps", "--format", "labels,paused"}), 0);
  EXPECT_EQ(out_, "{\"a\": \"1\\t2\", \"b\": \"x\"}\tfalse\n");
  EXPECT_EQ(run({"exec", "list", "--format", "exec_id,command"}), 0);
  EXPECT_EQ(out_, "exec-1\t[]\n");
  EXPECT_EQ(run({"ps", "--format", "id"}), 2);
  EXPECT_THAT(error_,
              StartsWith("--format: there is no field \"id\"; use some of sandbox_id, state"));
  EXPECT_EQ(run({"ps", "--format", "state.x"}), 2);
  EXPECT_EQ(error_, "--format: state has no keys; use it without \".x\"\n");
}

TEST_F(FlatCommands, InspectShowsSeveral) {
  EXPECT_EQ(run({"inspect", "box-1"}), 0);
  const std::string text = out_;
  EXPECT_EQ(run({"sandbox", "get", "box-1"}), 0);
  EXPECT_EQ(out_, text);
  EXPECT_EQ(run({"inspect", "box-1", "box-1"}), 0);
  EXPECT_EQ(out_, text + "\n" + text);
}

TEST_F(FlatCommands, AJsonCommandFailsInJson) {
  daemon_.status = unknown("nope");
  EXPECT_EQ(run({"inspect", "nope", "--json"}), 1);
  EXPECT_EQ(error_, "get sandbox: Sandbox nope not found.\n");
  EXPECT_EQ(out_,
            "{\"error\": {\"message\": \"get sandbox: Sandbox nope not found.\", \"code\": "
            "\"NOT_FOUND\", \"reason\": \"SANDBOX_NOT_FOUND\", \"metadata\": {\"sandbox_id\": "
            "\"nope\"}}}\n");
  EXPECT_EQ(run({"ps", "--json", "--nope"}), 2);
  EXPECT_THAT(out_, StartsWith("{\"error\": {\"message\": \"Error: unknown flag: --nope"));
}

TEST_F(FlatCommands, ANearFlagIsSuggested) {
  EXPECT_EQ(run({"ps", "--jsno"}), 2);
  EXPECT_THAT(error_, StartsWith("Error: unknown flag: --jsno\n\nDid you mean this?\n  --json\n\n"
                                 "Usage:\n  agbox ps"));
}

class IdleSandbox : public FlatCommands {
 protected:
  // The sandbox was stopped for this reason, and starts if it is asked to.
  void is_stopped(const std::string& reason) {
    daemon_.sandbox = box_in(v1::SANDBOX_STATE_STOPPED);
    auto stopped = moved(v1::SANDBOX_STOPPED, v1::SANDBOX_STATE_STOPPED);
    stopped.set_sequence(4);
    stopped.mutable_sandbox_phase()->set_reason(reason);
    daemon_.events = {stopped};
    daemon_.keep_streams_open = true;
  }
};

TEST_F(IdleSandbox, ExecResumesWhatWasStoppedForBeingIdle) {
  is_stopped("idle_ttl");
  daemon_.next_statuses = {grpc::Status::OK, {grpc::INTERNAL, "no luck"}};
  EXPECT_EQ(run({"exec", "box-1", "ls"}), 125);
  EXPECT_EQ(error_,
            "Sandbox box-1 was stopped because it was idle: resuming it.\n"
            "resume sandbox: no luck\n");
  EXPECT_THAT(daemon_.calls(), ElementsAre("GetSandbox sandbox_id: \"box-1\"",
                                           "SubscribeSandboxEvents sandbox_id: \"box-1\"",
                                           "ResumeSandbox sandbox_id: \"box-1\""));
}

TEST_F(IdleSandbox, ExecLeavesItStoppedIfAClientStoppedItOrTheUserSaysSo) {
  daemon_.next_statuses = {grpc::Status::OK, {grpc::INTERNAL, "is stopped"}};
  is_stopped("stop_requested");
  EXPECT_EQ(run({"exec", "-d", "box-1", "ls"}), 125);
  EXPECT_EQ(error_, "create exec: is stopped\n");
  is_stopped("idle_ttl");
  EXPECT_EQ(run({"exec", "-d", "--no-resume", "box-1", "ls"}), 0);
  EXPECT_THAT(daemon_.calls(), Not(Contains(StartsWith("ResumeSandbox"))));
}

TEST_F(FlatCommands, ExecWaitReturnsTheExitCode) {
  daemon_.exec.set_state(v1::EXEC_STATE_FAILED);
  daemon_.exec.set_exit_code(7);
  daemon_.exec.set_error("exit code 7");
  EXPECT_EQ(run({"exec", "wait", "exec-1"}), 7);
  EXPECT_EQ(out_ + error_, "");
  EXPECT_EQ(run({"exec", "wait", "--json", "exec-1"}), 7);
  EXPECT_THAT(out_, HasSubstr("\"exit_code\": 7"));
  daemon_.exec.set_state(v1::EXEC_STATE_RUNNING);
  daemon_.keep_streams_open = true;
  EXPECT_EQ(run({"exec", "wait", "--timeout", "1ms", "exec-1"}), 124);
  EXPECT_EQ(error_, "exec exec-1 has not ended within the --timeout; it keeps running\n");
  EXPECT_EQ(run({"exec", "wait", "--timeout", "0s", "exec-1"}), 2);
}

TEST_F(FlatCommands, SandboxWaitWaitsForAState) {
  EXPECT_EQ(run({"sandbox", "wait", "box-1"}), 0);
  EXPECT_EQ(out_ + error_, "");
  daemon_.keep_streams_open = true;
  EXPECT_EQ(run({"sandbox", "wait", "--for", "stopped", "--timeout", "1ms", "box-1"}), 124);
  EXPECT_EQ(error_, "sandbox box-1 is not stopped within the --timeout\n");
  daemon_.events = {moved(v1::SANDBOX_STOPPED, v1::SANDBOX_STATE_STOPPED)};
  EXPECT_EQ(run({"sandbox", "wait", "--for", "stopped", "box-1"}), 0);
  EXPECT_EQ(run({"sandbox", "wait", "--for", "deleted", "--timeout", "1ms", "box-1"}), 124);
  EXPECT_EQ(run({"sandbox", "wait", "--for", "lunch", "box-1"}), 2);
  EXPECT_EQ(error_, "--for must be \"ready\", \"stopped\" or \"deleted\"\n");
  daemon_.events = {moved(v1::SANDBOX_FAILED, v1::SANDBOX_STATE_FAILED)};
  EXPECT_EQ(run({"sandbox", "wait", "--for", "stopped", "box-1"}), 1);
  EXPECT_EQ(error_, "sandbox box-1 failed: unknown error\n");
}

TEST_F(FlatCommands, AListOfAllExecsShowsHowTheyEnded) {
  daemon_.exec.set_exit_code(0);
  daemon_.exec.mutable_started_at()->set_seconds(1'700'000'000);
  daemon_.exec.mutable_ended_at()->set_seconds(1'700'000'002);
  daemon_.exec.mutable_ended_at()->set_nanos(500'000'000);
  daemon_.exec.add_command("ls");
  EXPECT_EQ(run({"exec", "list", "--all", "box-1"}), 0);
  EXPECT_EQ(out_,
            "EXEC ID  SANDBOX ID  STATE     EXIT CODE  DURATION  COMMAND\n"
            "exec-1   box-1       Finished  0          2.5s      ls\n");
  EXPECT_EQ(run({"exec", "list", "-aq"}), 0);
  EXPECT_EQ(out_, "exec-1\n");
}

}  // namespace
}  // namespace agbox::cli
