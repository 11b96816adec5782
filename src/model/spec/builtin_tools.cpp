// SPDX-License-Identifier: Apache-2.0
#include "model/spec/builtin_tools.h"

#include <algorithm>
#include <set>

#include "model/spec/request_checks.h"

namespace agbox {
namespace {

using enum ToolResource::Kind;

// Names, sources and targets are known to clients.
constexpr ToolResource kClaude[] = {
    {.id = ".claude",
     .kind = Directory,
     .source = ".claude",
     .target = "/home/agbox/.claude",
     .is_required = true},
    {.id = ".claude.json",
     .kind = File,
     .source = ".claude.json",
     .target = "/home/agbox/.claude.json"},
    {.id = "pulse-audio",
     .kind = Socket,
     .source = {},
     .target = "/pulse-audio",
     .variable = "PULSE_SERVER=unix:/pulse-audio"},
};
constexpr ToolResource kCodex[] = {
    {.id = ".codex",
     .kind = Directory,
     .source = ".codex",
     .target = "/home/agbox/.codex",
     .is_required = true},
    {.id = ".agents", .kind = Directory, .source = ".agents", .target = "/home/agbox/.agents"},
};
constexpr ToolResource kGit[] = {
    {.id = "ssh-agent",
     .kind = Socket,
     .source = {},
     .target = "/ssh-agent",
     .variable = "SSH_AUTH_SOCK=/ssh-agent"},
    {.id = "gh-auth",
     .kind = Directory,
     .source = ".config/gh",
     .target = "/home/agbox/.config/gh",
     .is_writable = false},
    {.id = "ssh-known-hosts",
     .kind = File,
     .source = ".ssh/known_hosts",
     .target = "/home/agbox/.ssh/known_hosts"},
};
constexpr ToolResource kUv[] = {
    {.id = "uv-cache", .kind = Cache, .source = ".cache/uv", .target = "/home/agbox/.cache/uv"},
    // With the tools that uv installed next to its interpreters.
    {.id = "uv-python",
     .kind = Directory,
     .source = ".local/share/uv",
     .target = "/home/agbox/.local/share/uv",
     .variable = "UV_PYTHON_INSTALL_DIR=/home/agbox/.local/share/uv/python"},
};
constexpr ToolResource kNpm[] = {
    {.id = "npm", .kind = Cache, .source = ".npm", .target = "/home/agbox/.npm"},
};
constexpr ToolResource kApt[] = {
    {.id = "apt",
     .kind = Cache,
     .source = ".cache/agents-sandbox-apt",
     .target = "/var/cache/apt/archives"},
};
constexpr ToolResource kOpencode[] = {
    {.id = "opencode-config",
     .kind = Directory,
     .source = ".config/opencode",
     .target = "/home/agbox/.config/opencode"},
    {.id = "opencode-data",
     .kind = Directory,
     .source = ".local/share/opencode",
     .target = "/home/agbox/.local/share/opencode"},
};

constexpr BuiltinTool kTools[] = {
    {.name = "claude", .resources = kClaude},     {.name = "codex", .resources = kCodex},
    {.name = "git", .resources = kGit},           {.name = "uv", .resources = kUv},
    {.name = "npm", .resources = kNpm},           {.name = "apt", .resources = kApt},
    {.name = "opencode", .resources = kOpencode},
};

const BuiltinTool* find_tool(std::string_view name) {
  const auto* const found = std::ranges::find(kTools, name, &BuiltinTool::name);
  return found == std::end(kTools) ? nullptr : found;
}

}  // namespace

std::span<const BuiltinTool> builtin_tools() {
  return kTools;
}

std::string builtin_tool_names() {
  std::string names;
  for (const BuiltinTool& tool : kTools) {
    names.append(names.empty() ? "" : ", ").append(tool.name);
  }
  return names;
}

const ToolResource* find_tool_resource(std::string_view id) {
  for (const BuiltinTool& tool : kTools) {
    const auto found = std::ranges::find(tool.resources, id, &ToolResource::id);
    if (found != tool.resources.end()) return &*found;
  }
  return nullptr;
}

Result<> check_builtin_tools(const v1::CreateSpec& spec) {
  std::set<std::string_view> seen;
  for (const std::string& tool : spec.builtin_tools()) {
    if (tool.empty()) return invalid_argument("builtin resource id must not be empty");
    if (!seen.insert(tool).second) {
      return invalid_argument("duplicate builtin resource " + quoted_excerpt(tool));
    }
    if (find_tool(tool) == nullptr) {
      return invalid_argument("unknown builtin resource " + quoted_excerpt(tool));
    }
  }
  return {};
}

std::vector<RequestedResource> requested_resources(const v1::CreateSpec& spec) {
  std::vector<RequestedResource> requested;
  std::set<std::string_view> seen;
  for (const std::string& name : spec.builtin_tools()) {
    const BuiltinTool* const tool = find_tool(name);
    if (tool == nullptr) continue;  // check_builtin_tools() refuses it
    for (const ToolResource& resource : tool->resources) {
      if (seen.insert(resource.id).second) requested.push_back({tool->name, &resource});
    }
  }
  return requested;
}

}  // namespace agbox
