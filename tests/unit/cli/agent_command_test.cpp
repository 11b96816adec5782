// SPDX-License-Identifier: Apache-2.0
// agbox agent, claude and the others: flags, messages, and what is asked of the daemon.
#include <gmock/gmock.h>

#include <fstream>

#include "unit/cli/commands_fixture.h"

namespace agbox::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

class AgentCommand : public Commands {
 protected:
  AgentCommand() {
    ::setenv("HOME", home().c_str(), 1);
    ::setenv("XDG_CONFIG_HOME", (temp_directory_.path() / "config").c_str(), 1);
    ::setenv("XDG_STATE_HOME", (temp_directory_.path() / "state").c_str(), 1);
    std::filesystem::create_directories(home() / "project");
  }
  ~AgentCommand() override {
    ::setenv("HOME", former_home_.c_str(), 1);
    ::unsetenv("XDG_CONFIG_HOME");
    ::unsetenv("XDG_STATE_HOME");
  }
  std::filesystem::path home() const { return temp_directory_.path() / "home"; }
  static void prepare(test::ScriptedDaemon& daemon) {
    daemon.sandbox = box_in(v1::SANDBOX_STATE_READY);
    daemon.exec.set_state(v1::EXEC_STATE_FINISHED);
  }

  const std::string former_home_ = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "/";
};

struct Refused {
  std::vector<std::string> arguments;
  std::string message;
};

class RefusedAgentCommand : public AgentCommand, public testing::WithParamInterface<Refused> {};

TEST_P(RefusedAgentCommand, IsAUsageError) {
  const test::ScriptedDaemon daemon(socket());
  EXPECT_EQ(run(GetParam().arguments), 2);
  EXPECT_THAT(error_, StartsWith(GetParam().message));
  EXPECT_THAT(daemon.calls(), IsEmpty());
}

// Existing scripts compare these texts.
INSTANTIATE_TEST_SUITE_P(
    Messages, RefusedAgentCommand,
    testing::Values(
        Refused{{"agent"},
                "agbox agent requires --command; for pre-registered agents use agbox claude / "
                "agbox codex / agbox openclaw / agbox paseo\n"},
        Refused{{"agent", "--command", ""}, "--command must not be empty\n"},
        Refused{{"claude", "--command", " "}, "--command must not be empty\n"},
        Refused{{"codex", "--mode", "x"}, "--mode must be \"interactive\" or \"long-running\"\n"},
        Refused{{"claude", "--workspace", ""}, "--workspace must not be empty\n"},
        Refused{{"claude", "--workspace", "/no/such"},
                "--workspace path \"/no/such\": No such file or directory\n"},
        Refused{{"claude", "--workspace", "/"}, "--workspace rejects root directory: /"},
        Refused{{"claude", "--workspace", "none", "--gpus", "1"},
                "--gpus: unsupported value \"1\"; currently only empty or \"all\" are supported\n"},
        Refused{{"claude", "--workspace", "none", "--mount", "x"},
                "--mount \"x\": must be host:container or host:container:writable\n"},
        Refused{{"claude", "--workspace", "none", "--port", "x"},
                "--port \"x\": must be host:container[/proto]\n"},
        Refused{{"claude", "--workspace", "none", "--copy", "x"},
                "--copy \"x\": must be host:container\n"},
        Refused{{"claude", "--workspace", "none", "--label", "x"},
                "--label must be in key=value form\n"},
        Refused{{"claude", "--workspace", "none", "--label", "=x"},
                "--label key must not be empty\n"},
        Refused{{"claude", "--workspace", "none", "--env", "x"},
                "--env must be in key=value form\n"},
        Refused{{"claude", "--workspace", "none", "--detach-keys", "x-y"}, "--detach-keys must be"},
        Refused{{"claude", "--no-such"}, "Error: unknown flag: --no-such\n"},
        Refused{{"claude", "word"}, "Error: accepts 0 arg(s), received 1\n"},
        Refused{{"agent", "no-such"}, "there is no agent \"no-such\": "},
        Refused{{"paseo", "url"}, "Error: accepts 1 arg(s), received 0\n"}));

TEST_F(AgentCommand, TheHomeDirectoryIsNoWorkspace) {
  EXPECT_EQ(run({"claude", "--workspace", home().string()}), 2);
  EXPECT_THAT(error_, StartsWith("--workspace rejects home directory: " + home().string()));
}

TEST_F(AgentCommand, AnInteractiveAgentNeedsATerminal) {
  const test::ScriptedDaemon daemon(socket());
  for (const char* const agent : {"claude", "codex", "opencode"}) {
    EXPECT_EQ(run({agent, "--workspace", "none"}), 2);
    EXPECT_EQ(error_, "stdin is not a TTY; agbox agent requires an interactive terminal\n");
  }
  EXPECT_EQ(run({"agent", "--command", "sh", "--workspace", "none"}), 2);
  EXPECT_THAT(daemon.calls(), IsEmpty());
}

TEST_F(AgentCommand, OpenclawNeedsALogin) {
  EXPECT_EQ(run({"openclaw"}), 2);
  EXPECT_THAT(error_, AllOf(StartsWith("openclaw: " + home().string() + "/.openclaw/"),
                            HasSubstr("openclaw onboard")));
}

TEST_F(AgentCommand, ALongRunningAgentIsLeftRunning) {
  test::ScriptedDaemon daemon(socket(), prepare);
  EXPECT_EQ(run({"agent", "--mode", "long-running", "--command", "serve --all", "--image", "a:1",
                 "--workspace", "none", "--label", "x=y", "--builtin-tool", "git", "--builtin-tool",
                 "git"}),
            0);
  EXPECT_THAT(out_, MatchesRegex("[0-9a-f-]{36}\n"));
  EXPECT_THAT(error_, AllOf(HasSubstr(" ready in "), HasSubstr("agbox rm ")));
  ASSERT_THAT(daemon.calls(), testing::SizeIs(1)) << "it is not deleted";
  const std::string request = daemon.calls().front();
  EXPECT_THAT(request, StartsWith("CreateSandbox create_spec { image: \"a:1\" "));
  EXPECT_THAT(request, HasSubstr("key: \"created-by\" value: \"agbox-cli\""));
  EXPECT_THAT(request, HasSubstr("key: \"agent-type\" value: \"serve\""));
  EXPECT_THAT(request, HasSubstr("key: \"x\" value: \"y\""));
  EXPECT_THAT(request, HasSubstr("builtin_tools: \"git\" "));
  EXPECT_THAT(request, Not(HasSubstr("builtin_tools: \"git\" builtin_tools: \"git\"")));
  EXPECT_THAT(request, HasSubstr("idle_ttl { }"));
  EXPECT_THAT(request, HasSubstr("command: \"serve\" command: \"--all\""));
}

TEST_F(AgentCommand, APresetIsKnownByItsNameAndItsFlagsWin) {
  test::ScriptedDaemon daemon(socket(), prepare);
  EXPECT_EQ(run({"paseo", "--label", "agent-type=mine", "--idle-ttl", "2h", "--env",
                 "PASEO_DICTATION_ENABLED=1"}),
            0);
  EXPECT_THAT(out_, MatchesRegex("paseo-[0-9a-f]{6}\n"));
  const std::string request = daemon.calls().front();
  EXPECT_THAT(request, HasSubstr("image: \"ghcr.io/agents-sandbox/paseo-runtime:latest\""));
  EXPECT_THAT(request, HasSubstr("key: \"agent-type\" value: \"mine\""));
  EXPECT_THAT(request, HasSubstr("key: \"PASEO_DICTATION_ENABLED\" value: \"1\""));
  EXPECT_THAT(request, HasSubstr("idle_ttl { seconds: 7200 }"));
  EXPECT_THAT(error_, HasSubstr("paseo: skipping builtin tool \"claude\": required host path \""));
}

TEST_F(AgentCommand, AYamlFileIsBetweenTheAgentAndTheFlags) {
  test::ScriptedDaemon daemon(socket(), prepare);
  const std::string file = (home() / "sandbox.yaml").string();
  std::ofstream(file) << "image: file:1\nmemory_limit: 1g\ncpu_limit: 2\n";
  EXPECT_EQ(run({"paseo", "--yaml-file", file, "--cpu-limit", "3"}), 0);
  EXPECT_THAT(daemon.calls().front(),
              AllOf(HasSubstr("image: \"file:1\""), HasSubstr("memory_limit: \"1g\""),
                    HasSubstr("cpu_limit: \"3\""), Not(HasSubstr("config_yaml"))));
  std::ofstream(file) << "imag: x\n";
  EXPECT_EQ(run({"paseo", "--yaml-file", file}), 2);
  EXPECT_THAT(error_, StartsWith("invalid --yaml-file: line 1, column 1: unknown key"));
}

TEST_F(AgentCommand, AMountedWorkspaceIsTheFirstMount) {
  test::ScriptedDaemon daemon(socket(), prepare);
  const std::string project = std::filesystem::canonical(home() / "project").string();
  EXPECT_EQ(run({"paseo", "--workspace", project + ":mount", "--mount", "/a:/b"}), 0);
  EXPECT_THAT(daemon.calls().front(),
              HasSubstr("mounts { source: \"" + project +
                        "\" target: \"/workspace\" writable: true } mounts { source: \"/a\""));
  EXPECT_EQ(run({"paseo", "--workspace", project + ":mount:ro"}), 0);
  EXPECT_THAT(daemon.calls().back(), Not(HasSubstr("writable")));
}

TEST_F(AgentCommand, ALongRunningAgentThatFailsIsDeleted) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.sandbox = box_in(v1::SANDBOX_STATE_FAILED);
  daemon.sandbox.set_error_message("no such image");
  EXPECT_EQ(run({"paseo", "--sandbox-id", "box-1"}), 1);
  EXPECT_EQ(out_, "");
  EXPECT_THAT(error_, AllOf(HasSubstr("sandbox box-1 failed: no such image\n"),
                            HasSubstr("Cleaning up sandbox box-1...\n")));
}

TEST_F(AgentCommand, ASignalBeforeItIsReadyDeletesIt) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.sandbox = box_in(v1::SANDBOX_STATE_PENDING);
  daemon.sandboxes["box-1"] = box_in(v1::SANDBOX_STATE_DELETED);  // when that is awaited
  daemon.keep_streams_open = true;
  const auto person = interrupt_at(daemon, "SubscribeSandboxEvents", SIGTERM);
  EXPECT_EQ(run({"paseo", "--sandbox-id", "box-1"}), 143);
  EXPECT_THAT(daemon.calls(), testing::Contains("DeleteSandbox sandbox_id: \"box-1\""));
  EXPECT_THAT(error_, testing::EndsWith("Sandbox box-1 cleaned up.\n"));
}

TEST_F(AgentCommand, AnAgentOfAgboxIsAnArgumentToo) {
  test::ScriptedDaemon daemon(socket(), prepare);
  EXPECT_EQ(run({"agent", "--image", "a:1", "paseo", "--cpu-limit", "3"}), 0);
  EXPECT_THAT(out_, MatchesRegex("paseo-[0-9a-f]{6}\n"));
  EXPECT_THAT(daemon.calls().front(),
              AllOf(HasSubstr("image: \"a:1\""), HasSubstr("cpu_limit: \"3\"")));
  EXPECT_EQ(run({"agent", "paseo", "url"}), 2);
  EXPECT_THAT(error_, StartsWith("Error: accepts at most 1 arg(s), received 2\n"));
}

TEST_F(AgentCommand, TheUrlOfPaseoIsWhatItsCommandPrints) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.exec_stdout = "https://pair\n";
  EXPECT_EQ(run({"paseo", "url", "box-1"}), 0);
  EXPECT_EQ(out_, "https://pair\n");
  EXPECT_THAT(daemon.calls().front(),
              StartsWith("CreateExec sandbox_id: \"box-1\" command: \"/usr/local/bin/paseo\" "
                         "command: \"daemon\" command: \"pair\""));
  daemon.exec.set_state(v1::EXEC_STATE_FAILED);
  daemon.exec.set_exit_code(7);
  daemon.exec.set_error("exit code 7");
  daemon.exec_stderr = "not paired\n";
  EXPECT_EQ(run({"paseo", "url", "box-1"}), 1);
  EXPECT_EQ(out_, "");
  EXPECT_EQ(error_, "not paired\nexec finished with exit_code=7\n");
  daemon.exec.set_state(v1::EXEC_STATE_CANCELLED);
  EXPECT_EQ(run({"paseo", "url", "box-1"}), 1);
  EXPECT_THAT(error_, HasSubstr("exec cancelled\n"));
}

TEST_F(AgentCommand, TheListHasNamesAndJson) {
  EXPECT_EQ(run({"agent", "--list", "-q"}), 0);
  EXPECT_EQ(out_, "claude\ncodex\nopenclaw\nopencode\npaseo\n");
  EXPECT_EQ(run({"agent", "--list", "--json"}), 0);
  EXPECT_THAT(out_, HasSubstr("{\"name\": \"claude\", \"mode\": \"interactive\", \"workspace\": "
                              "\"copy\", \"source\": \"builtin\""));
  EXPECT_EQ(run({"agent", "-q"}), 2);
}

TEST_F(AgentCommand, WithoutSessionsThereIsNothingToShowOrApply) {
  EXPECT_EQ(run({"diff", "--list", "-q"}), 0);
  EXPECT_EQ(out_, "");
  EXPECT_EQ(run({"diff", "--list", "--json"}), 0);
  EXPECT_EQ(out_, "{\n  \"sessions\": []\n}\n");
  EXPECT_EQ(run({"diff"}), 2);
  for (const char* const command : {"diff", "apply"}) {
    EXPECT_EQ(run({command, "box-1"}), 1);
    EXPECT_EQ(error_, std::string(command) +
                          ": nothing is recorded of sandbox \"box-1\": only agent sessions with a "
                          "copied workspace are; see agbox diff --list\n");
  }
}

}  // namespace
}  // namespace agbox::cli
