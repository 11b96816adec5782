// SPDX-License-Identifier: Apache-2.0
#include "cli/agent/definition.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/agent/builtin_definitions.h"
#include "cli/agent/host_values.h"
#include "unit/cli/captured_console.h"
#include "unit/sdk/scripted_daemon.h"

namespace agbox::cli {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

AgentDefinition parsed(const std::string& yaml) {
  auto agent = parse_agent_definition("test", yaml);
  EXPECT_TRUE(agent) << agent.error().message();
  return agent.value_or(AgentDefinition());
}

std::string problem(const std::string& yaml) {
  const auto agent = parse_agent_definition("test", yaml);
  return agent ? "" : agent.error().message();
}

TEST(AgentDefinition, HasTheKeysOfASandboxAndItsOwn) {
  const AgentDefinition agent = parsed(
      "description: Tests\nagent_command: [run, all]\nworkspace: mount:ro\nimage: debian:12\n"
      "envs: {A: 1}\nskip_missing_tools: true\n");
  EXPECT_EQ(agent.description, "Tests");
  EXPECT_THAT(agent.agent_command, ElementsAre("run", "all"));
  EXPECT_EQ(agent.workspace, WorkspaceMode::MountReadOnly);
  EXPECT_EQ(agent.mode, AgentMode::Interactive);
  EXPECT_TRUE(agent.skips_missing_tools);
  EXPECT_EQ(agent.spec.image(), "debian:12");
  EXPECT_EQ(agent.spec.envs().at("A"), "1");
}

TEST(AgentDefinition, AnInteractiveAgentGetsACopyAndALongRunningOneNothing) {
  EXPECT_EQ(parsed("agent_command: [x]").workspace, WorkspaceMode::Copy);
  EXPECT_EQ(parsed("mode: long-running").workspace, WorkspaceMode::None);
  EXPECT_EQ(parsed("mode: long-running\nworkspace: mount").workspace, WorkspaceMode::Mount);
}

struct BadDefinition {
  const char* yaml;
  const char* problem;
};

class AgentDefinitionErrors : public testing::TestWithParam<BadDefinition> {};

TEST_P(AgentDefinitionErrors, NameTheirPlace) {
  EXPECT_EQ(problem(GetParam().yaml), GetParam().problem);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, AgentDefinitionErrors,
    testing::Values(
        BadDefinition{"", "line 1, column 1: the document is empty"},
        BadDefinition{"agent_command: [x]\nimag: y",
                      "line 2, column 1: unknown key \"imag\"; did you mean \"image\"?"},
        BadDefinition{"agent_comand: [x]",
                      "line 1, column 1: unknown key \"agent_comand\"; did you mean "
                      "\"agent_command\"?"},
        BadDefinition{"agent_command: x",
                      "line 1, column 16: agent_command must be a list of strings that are not "
                      "empty"},
        BadDefinition{"mode: forever",
                      "line 1, column 7: mode must be \"interactive\" or \"long-running\""},
        BadDefinition{"agent_command: [x]\nworkspace: move",
                      "line 2, column 12: workspace must be copy, mount, mount:ro or none"},
        BadDefinition{"image: debian:12",
                      "line 1, column 1: agent_command is required; it runs in the terminal"},
        BadDefinition{"agent_command: [x]\ncommand: [y]",
                      "line 1, column 1: command is for the mode long-running; an interactive "
                      "agent has agent_command"},
        BadDefinition{"mode: long-running\nagent_command: [y]",
                      "line 1, column 1: agent_command is for the mode interactive; a "
                      "long-running agent has command"},
        BadDefinition{"agent_command: [x]\nports:\n- host_port: y",
                      "line 3, column 14: host_port must be a whole number from 1 to 65535, "
                      "without quotes"},
        BadDefinition{"agent_command: [x]\nrequires:\n- fil: y",
                      "line 3, column 3: unknown key \"fil\"; did you mean \"file\"?"},
        BadDefinition{"agent_command: [x]\nready_values:\n  a: {prefix: y}",
                      "line 3, column 6: a ready value has either a command or a file"}));

// What existing users of these names rely on.
TEST(BuiltinAgents, AreTheKnownOnes) {
  std::vector<std::string> names;
  for (const auto& builtin : builtin_definitions()) {
    names.emplace_back(builtin.name);
    const auto agent = parse_agent_definition(names.back(), builtin.yaml);
    ASSERT_TRUE(agent) << agent.error().message();
    EXPECT_EQ(agent->description, builtin.description);
  }
  EXPECT_THAT(names, ElementsAre("claude", "codex", "openclaw", "opencode", "paseo"));
}

AgentDefinition builtin(const std::string& name) {
  for (const auto& each : builtin_definitions()) {
    if (each.name == name) return parsed(std::string(each.yaml));
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(BuiltinAgents, ClaudeAndCodexWorkOnACopy) {
  const AgentDefinition claude = builtin("claude");
  EXPECT_THAT(claude.agent_command, ElementsAre("claude", "--dangerously-skip-permissions"));
  EXPECT_THAT(claude.spec.builtin_tools(), ElementsAre("claude", "git", "uv", "npm", "apt"));
  EXPECT_EQ(claude.workspace, WorkspaceMode::Copy);
  EXPECT_EQ(claude.spec.image(), "") << "the default image";
  const AgentDefinition codex = builtin("codex");
  EXPECT_THAT(codex.agent_command,
              ElementsAre("codex", "--dangerously-bypass-approvals-and-sandbox"));
  EXPECT_THAT(codex.spec.builtin_tools(), ElementsAre("codex", "git", "uv", "npm", "apt"));
}

TEST(BuiltinAgents, OpenclawIsAGateway) {
  const AgentDefinition agent = builtin("openclaw");
  EXPECT_EQ(agent.mode, AgentMode::LongRunning);
  EXPECT_EQ(agent.workspace, WorkspaceMode::None);
  EXPECT_EQ(agent.spec.image(), "ghcr.io/agents-sandbox/openclaw-runtime:latest");
  EXPECT_THAT(agent.spec.command(),
              ElementsAre("openclaw", "gateway", "run", "--port", "18789", "--bind", "lan"));
  EXPECT_THAT(agent.spec.builtin_tools(), ElementsAre("git", "npm", "uv", "apt"));
  ASSERT_EQ(agent.spec.mounts_size(), 1);
  EXPECT_EQ(agent.spec.mounts(0).source(), "~/.openclaw");
  EXPECT_EQ(agent.spec.mounts(0).target(), "~/.openclaw");
  EXPECT_TRUE(agent.spec.mounts(0).writable());
  ASSERT_EQ(agent.spec.ports_size(), 1);
  EXPECT_EQ(agent.spec.ports(0).host_port(), 18789);
  EXPECT_EQ(agent.spec.ports(0).container_port(), 18789);
  EXPECT_EQ(agent.spec.envs().at("OPENCLAW_STATE_DIR"), "/home/agbox/.openclaw");
  EXPECT_EQ(agent.spec.envs().at("OPENCLAW_CONFIG_PATH"),
            "/home/agbox/.openclaw/config/openclaw.json");
}

TEST(BuiltinAgents, PaseoIsADaemon) {
  const AgentDefinition agent = builtin("paseo");
  EXPECT_EQ(agent.mode, AgentMode::LongRunning);
  EXPECT_EQ(agent.spec.image(), "ghcr.io/agents-sandbox/paseo-runtime:latest");
  EXPECT_THAT(agent.spec.command(),
              ElementsAre("/usr/local/bin/paseo", "daemon", "start", "--listen", "0.0.0.0:6767",
                          "--hostnames", "true", "--foreground"));
  EXPECT_THAT(agent.spec.builtin_tools(),
              ElementsAre("claude", "codex", "npm", "uv", "apt", "opencode"));
  EXPECT_EQ(agent.spec.envs().at("PASEO_DICTATION_ENABLED"), "0");
  EXPECT_EQ(agent.spec.envs().at("PASEO_VOICE_MODE_ENABLED"), "0");
  EXPECT_EQ(agent.spec.envs().at("OPENCODE_DISABLE_EXTERNAL_SKILLS"), "1");
  EXPECT_TRUE(agent.skips_missing_tools);
}

class UsersAgents : public testing::Test {
 protected:
  UsersAgents() {
    ::setenv("XDG_CONFIG_HOME", directory_.path().c_str(), 1);
    ::setenv("HOME", directory_.path().c_str(), 1);
    std::filesystem::create_directories(agents());
  }
  ~UsersAgents() override {
    ::unsetenv("XDG_CONFIG_HOME");
    ::setenv("HOME", former_home_.c_str(), 1);
  }
  std::filesystem::path agents() const { return directory_.path() / "agents-sandbox/agents"; }
  void write(const std::filesystem::path& path, const std::string& text) const {
    std::filesystem::create_directories((directory_.path() / path).parent_path());
    std::ofstream(directory_.path() / path) << text;
  }

  const test::ShortDirectory directory_;
  const std::string former_home_ = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "/";
};

TEST_F(UsersAgents, ComeBeforeThoseOfAgbox) {
  EXPECT_EQ(find_agent_definition("claude")->spec.image(), "");
  write("agents-sandbox/agents/claude.yaml", "image: mine:1\nagent_command: [claude]\n");
  EXPECT_EQ(find_agent_definition("claude")->spec.image(), "mine:1");
}

TEST_F(UsersAgents, HaveErrorsWithFileLineAndColumn) {
  write("agents-sandbox/agents/x.yaml", "agent_command: [x]\n  image: y\n");
  EXPECT_THAT(find_agent_definition("x").error().message(),
              StartsWith(agents().string() + "/x.yaml: line 2, column "));
  EXPECT_THAT(find_agent_definition("nope").error().message(),
              StartsWith("there is no agent \"nope\": no " + agents().string() + "/nope.yaml"));
  EXPECT_THAT(find_agent_definition("../x").error().message(),
              StartsWith("\"../x\" is not the name of an agent"));
}

TEST_F(UsersAgents, AreListedWithTheirProblems) {
  write("agents-sandbox/agents/broken.yaml", "x: y");
  write("agents-sandbox/agents/notes.txt", "no agent");
  const auto all = list_agent_definitions();
  ASSERT_TRUE(all);
  std::vector<std::string> names;
  for (const ListedAgent& agent : *all) names.push_back(agent.name);
  EXPECT_THAT(names, ElementsAre("broken", "claude", "codex", "openclaw", "opencode", "paseo"));
  EXPECT_THAT(all->front().problem, EndsWith("broken.yaml: line 1, column 1: unknown key \"x\""));
  EXPECT_EQ((*all)[1].source, "builtin");
}

TEST_F(UsersAgents, MayRequireSomethingOfTheMachine) {
  const AgentDefinition openclaw = builtin("openclaw");
  EXPECT_THAT(unmet_requirement(openclaw), HasSubstr("auth-profiles.json does not exist\n\n"));
  const char* const file = ".openclaw/agents/main/agent/auth-profiles.json";
  for (const char* const text : {"{\"profiles\": {}}", "{", "[]", "{\"profiles\": null}"}) {
    write(file, text);
    EXPECT_THAT(unmet_requirement(openclaw),
                HasSubstr("auth-profiles.json has no \"profiles\"\n\n"))
        << text;
  }
  write(file, "{\"profiles\": {\"a\": {}}}");
  EXPECT_EQ(unmet_requirement(openclaw), "");
}

TEST_F(UsersAgents, ReadAValueOfAJsonFile) {
  write(".openclaw/config/openclaw.json", "{\"gateway\": {\"auth\": {\"token\": \"t-1\"}}}");
  EXPECT_EQ(json_value("~/.openclaw/config/openclaw.json", "gateway.auth.token"), "t-1");
  EXPECT_EQ(json_value("~/.openclaw/config/openclaw.json", "gateway.token"), std::nullopt);
  EXPECT_EQ(json_value("~/nope.json", "gateway"), std::nullopt);
}

TEST_F(UsersAgents, SkipToolsThatTheMachineLacks) {
  std::filesystem::create_directory(directory_.path() / ".codex");
  v1::CreateSpec spec = builtin("paseo").spec;
  CapturedConsole captured;
  skip_missing_tools(captured.console(), "paseo", spec);
  EXPECT_THAT(spec.builtin_tools(), ElementsAre("codex", "npm", "uv", "apt", "opencode"));
  EXPECT_EQ(captured.error(), "paseo: skipping builtin tool \"claude\": required host path \"" +
                                  directory_.path().string() + "/.claude\" not found\n");
}

}  // namespace
}  // namespace agbox::cli
