// SPDX-License-Identifier: Apache-2.0
// Builtin tools: what of the host their sandbox sees, and how it is told where that is.
#include <filesystem>
#include <fstream>

#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kSandbox = "tools-1";

class ToolsTest : public ControlTest {
 protected:
  ToolsTest() : host_(fs::canonical(temp_directory_.path()) / "home") {
    home_ = host_;
    make_directory("");
    start();
  }

  // Writable by every user: commands run as another one.
  void make_directory(const std::string& path) {
    fs::create_directories(host_ / path);
    fs::permissions(host_ / path, fs::perms::all);
  }
  SandboxSpec with_tools(const std::vector<std::string>& tools) {
    v1::CreateSpec wanted = spec().create_spec;
    for (const std::string& tool : tools) wanted.add_builtin_tools(tool);
    return parse_create_spec(wanted).value();
  }
  // What the container mounts besides what every container does.
  std::vector<std::string> mounted() {
    std::vector<std::string> lines;
    for (const auto& mount : primary(kSandbox).spec.at("HostConfig").at("Mounts").as_array()) {
      const fs::path source(std::string(mount.at("Source").as_string()));
      const std::string below = source.lexically_relative(host_).string();
      if (below.starts_with("..")) continue;
      lines.push_back(below + " " + std::string(mount.at("Target").as_string()) +
                      (mount.at("ReadOnly").as_bool() ? " ro" : " rw"));
    }
    return lines;
  }
  std::vector<std::string> environment() {
    std::vector<std::string> lines;
    for (const auto& line : primary(kSandbox).spec.at("Env").as_array()) {
      lines.emplace_back(line.as_string());
    }
    return lines;
  }
  std::vector<std::string> shown() {
    std::vector<std::string> lines;
    for (const v1::BuiltinResource& one : handle(kSandbox).builtin_resources()) {
      lines.push_back(one.tool() + " " + one.id() + " " +
                      fs::path(one.source()).lexically_relative(host_).string() + " " +
                      one.target() + (one.writable() ? " rw" : " ro") +
                      (one.socket() ? " socket" : "") + (one.shadow_copy() ? " copied" : ""));
    }
    return lines;
  }

  const fs::path host_;
};

TEST_F(ToolsTest, AreMountedBeforeWhatTheCallerDeclares) {
  make_directory(".config/gh");
  make_directory(".local/share/uv");
  make_directory("notes");
  SandboxSpec wanted = with_tools({"uv", "git"});
  v1::MountSpec& mount = *wanted.create_spec.add_mounts();
  mount.set_source(host_ / "notes");
  mount.set_target("/notes");
  create_ready(kSandbox, std::move(wanted));
  EXPECT_THAT(mounted(), ElementsAre(".local/share/uv /home/agbox/.local/share/uv rw",
                                     ".config/gh /home/agbox/.config/gh ro", "notes /notes ro"));
  EXPECT_THAT(environment(), Contains("UV_PYTHON_INSTALL_DIR=/home/agbox/.local/share/uv/python"));
  EXPECT_THAT(environment(), Not(Contains(HasSubstr("SSH_AUTH_SOCK"))));
  const auto visible = ElementsAre("uv uv-python .local/share/uv /home/agbox/.local/share/uv rw",
                                   "git gh-auth .config/gh /home/agbox/.config/gh ro");
  EXPECT_THAT(shown(), visible);
  restart();
  EXPECT_THAT(shown(), visible);
  stop_sandbox(kSandbox);
  resume_sandbox(kSandbox);
  EXPECT_THAT(shown(), visible);
}

TEST_F(ToolsTest, ACallersVariableReplacesThatOfATool) {
  make_directory(".local/share/uv");
  SandboxSpec wanted = with_tools({"uv"});
  (*wanted.create_spec.mutable_envs())["UV_PYTHON_INSTALL_DIR"] = "/mine";
  create_ready(kSandbox, std::move(wanted));
  EXPECT_THAT(environment(), Contains("UV_PYTHON_INSTALL_DIR=/mine"));
}

TEST_F(ToolsTest, ATreeWithALinkThatLeadsOutIsCopiedBeforeTheCallersCopies) {
  make_directory(".claude");
  fs::create_symlink("/etc/passwd", host_ / ".claude/out");
  SandboxSpec wanted = spec_with_copy("/first");
  wanted.create_spec.add_builtin_tools("claude");
  create_ready(kSandbox, std::move(wanted));
  EXPECT_THAT(guests_.copied(), ElementsAre("/home/agbox/.claude", "/first"));
  EXPECT_THAT(mounted(), IsEmpty());
  EXPECT_THAT(shown(), ElementsAre("claude .claude .claude /home/agbox/.claude rw copied"));
  // A later start has it in its container.
  stop_sandbox(kSandbox);
  fs::remove_all(host_ / ".claude");
  resume_sandbox(kSandbox);
  EXPECT_EQ(guests_.copied().size(), 2U);
}

// A sandbox that has the tool can make a directory that is too deep, and a link that leads out.
TEST_F(ToolsTest, WhatTheyLackIsInTheHandle) {
  std::string deep = ".codex";
  for (int i = 0; i < 130; ++i) deep += "/d";
  make_directory(deep);
  make_directory(".codex");
  fs::create_symlink("/etc/passwd", host_ / ".codex/out");
  create_ready(kSandbox, with_tools({"git", "codex"}));
  const auto expect_warnings = [this] {
    const v1::SandboxHandle shown = handle(kSandbox);
    const auto& warnings = shown.warnings();
    ASSERT_EQ(warnings.size(), 2);
    EXPECT_THAT(warnings[0], HasSubstr("builtin tool git shows nothing: ssh-agent: "));
    EXPECT_THAT(warnings[1],
                HasSubstr("the shadow copy of " + (host_ / ".codex").string() + " lacks "));
    EXPECT_THAT(warnings[1], HasSubstr(": deeper than 128 directories"));
  };
  expect_warnings();
  restart();
  expect_warnings();
  stop_sandbox(kSandbox);
  resume_sandbox(kSandbox);
  expect_warnings();
}

TEST_F(ToolsTest, ASourceThatIsReplacedIsNotShown) {
  make_directory(".claude");
  create_ready(kSandbox, with_tools({"claude"}));
  stop_sandbox(kSandbox);
  fs::rename(host_ / ".claude", host_ / "before");
  make_directory(".claude");
  ASSERT_TRUE(ask_resume(kSandbox).has_value());
  wait_for_state(kSandbox, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle(kSandbox).error_code(), "MOUNT_CHANGED");
  EXPECT_THAT(handle(kSandbox).error_message(),
              HasSubstr("builtin tool source " + (host_ / ".claude").string() +
                        " was replaced by another file or directory"));
}

TEST_F(ToolsTest, ARefusedOneReservesNothing) {
  EXPECT_THAT(create(kSandbox, with_tools({"claude"})).error().message(),
              HasSubstr("builtin tool claude: stat " + (host_ / ".claude").string()));
  make_directory(".claude");
  SandboxSpec wanted = with_tools({"claude"});
  v1::MountSpec& mount = *wanted.create_spec.add_mounts();
  mount.set_source(host_);
  mount.set_target("/home/agbox/.claude");
  EXPECT_THAT(create(kSandbox, std::move(wanted)).error().message(),
              HasSubstr("conflicting mount target /home/agbox/.claude for "));
  create_ready(kSandbox, with_tools({"claude"}));
}

}  // namespace
}  // namespace agbox
