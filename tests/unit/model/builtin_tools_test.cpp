// SPDX-License-Identifier: Apache-2.0
#include "model/spec/builtin_tools.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "model/spec/ingress_paths.h"
#include "model/spec/tool_targets.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What clients know of it, one line per resource.
std::string text_of(const BuiltinTool& tool) {
  using Kind = ToolResource::Kind;
  std::string text(tool.name);
  for (const ToolResource& resource : tool.resources) {
    text += "\n  " + std::string(resource.id) + ": ";
    text += resource.kind == Kind::Socket ? "socket" : "~/" + std::string(resource.source);
    text += " -> " + std::string(resource.target);
    if (resource.kind == Kind::File) text += " file";
    if (resource.kind == Kind::Cache) text += " cache";
    text += resource.is_writable ? " rw" : " ro";
    if (resource.is_required) text += " required";
    if (!resource.variable.empty()) text += " " + std::string(resource.variable);
  }
  return text;
}

TEST(BuiltinTools, AreThoseThatClientsKnow) {
  std::vector<std::string> tools;
  for (const BuiltinTool& tool : builtin_tools()) tools.push_back(text_of(tool));
  EXPECT_THAT(
      tools,
      ElementsAre(
          "claude\n"
          "  .claude: ~/.claude -> /home/agbox/.claude rw required\n"
          "  .claude.json: ~/.claude.json -> /home/agbox/.claude.json file rw\n"
          "  pulse-audio: socket -> /pulse-audio rw PULSE_SERVER=unix:/pulse-audio",
          "codex\n"
          "  .codex: ~/.codex -> /home/agbox/.codex rw required\n"
          "  .agents: ~/.agents -> /home/agbox/.agents rw",
          "git\n"
          "  ssh-agent: socket -> /ssh-agent rw SSH_AUTH_SOCK=/ssh-agent\n"
          "  gh-auth: ~/.config/gh -> /home/agbox/.config/gh ro\n"
          "  ssh-known-hosts: ~/.ssh/known_hosts -> /home/agbox/.ssh/known_hosts file rw",
          "uv\n"
          "  uv-cache: ~/.cache/uv -> /home/agbox/.cache/uv cache rw\n"
          "  uv-python: ~/.local/share/uv -> /home/agbox/.local/share/uv rw "
          "UV_PYTHON_INSTALL_DIR=/home/agbox/.local/share/uv/python",
          "npm\n"
          "  npm: ~/.npm -> /home/agbox/.npm cache rw",
          "apt\n"
          "  apt: ~/.cache/agents-sandbox-apt -> /var/cache/apt/archives cache rw",
          "opencode\n"
          "  opencode-config: ~/.config/opencode -> /home/agbox/.config/opencode rw\n"
          "  opencode-data: ~/.local/share/opencode -> /home/agbox/.local/share/opencode rw"));
  EXPECT_EQ(builtin_tool_names(), "claude, codex, git, uv, npm, apt, opencode");
}

// A caller could mount each of them as well: none is reserved, and none is inside another.
TEST(BuiltinTools, HaveTargetsThatAMountMayHaveToo) {
  v1::CreateSpec all;
  for (const BuiltinTool& tool : builtin_tools()) {
    for (const ToolResource& resource : tool.resources) {
      v1::MountSpec& mount = *all.add_mounts();
      mount.set_source("/x");
      mount.set_target(std::string(resource.target));
      EXPECT_EQ(find_tool_resource(resource.id), &resource) << "IDs are unique: " << resource.id;
    }
  }
  const auto cleaned = clean_ingress_paths(all);
  EXPECT_TRUE(cleaned.has_value()) << cleaned.error().message();
  EXPECT_EQ(find_tool_resource("vim"), nullptr);
}

TEST(BuiltinTools, NeedEachResourceOnceInTheOrderOfTheRequest) {
  v1::CreateSpec spec;
  for (const char* tool : {"npm", "codex", "npm"}) spec.add_builtin_tools(tool);
  std::vector<std::string> needed;
  for (const RequestedResource& one : requested_resources(spec)) {
    needed.push_back(std::string(one.tool) + " " + std::string(one.resource->id));
  }
  EXPECT_THAT(needed, ElementsAre("npm npm", "codex .codex", "codex .agents"));
  EXPECT_THAT(requested_resources({}), IsEmpty());
}

std::string conflict(const std::string& spec_text, bool is_shadow_copied) {
  v1::CreateSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(spec_text, &spec));
  store::v1::CreatedWith created_with;
  v1::BuiltinResource& tool = *created_with.add_tools()->mutable_resource();
  tool.set_tool("claude");
  tool.set_source("/home/me/.claude");
  tool.set_target("/home/agbox/.claude");
  tool.set_shadow_copy(is_shadow_copied);
  const auto checked = check_tool_targets(spec, created_with);
  return checked ? "" : checked.error().message();
}

TEST(BuiltinTools, ShareNoTargetWithAMountOrCopy) {
  const std::string conflicting =
      "conflicting mount target /home/agbox/.claude for /home/me/.claude and /x";
  for (const bool is_shadow_copied : {false, true}) {
    EXPECT_THAT(conflict("mounts { source: '/x' target: '/home/agbox/.claude' }", is_shadow_copied),
                HasSubstr(conflicting));
    EXPECT_THAT(
        conflict("copies { source: '/x' target: '/home/agbox/.claude/' }", is_shadow_copied),
        HasSubstr(conflicting));
    EXPECT_EQ(conflict("mounts { source: '/x' target: '/home/agbox/.claude-x' } "
                       "copies { source: '/x' target: '/home/agbox/.claude/skills' }",
                       is_shadow_copied),
              "");
  }
}

// What is copied there would be written to the host.
TEST(BuiltinTools, AreNotCopiedOverAMount) {
  for (const std::string target : {"/home/agbox/.claude/skills", "/home/agbox", "/home"}) {
    const std::string mount = "mounts { source: '/x' target: '" + target + "' }";
    EXPECT_EQ(conflict(mount, false), "");
    EXPECT_THAT(conflict(mount, true), HasSubstr("the copy would be written to /x"));
  }
}

}  // namespace
}  // namespace agbox
