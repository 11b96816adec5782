// SPDX-License-Identifier: Apache-2.0
// An agent that agbox can run: a file with the keys of a sandbox's YAML, and some more that say how
// the agent is used.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agbox/v1/spec.pb.h"
#include "base/result.h"
#include "cli/workspace/workspace_flag.h"

namespace agbox::cli {

enum class AgentMode {
  Interactive,  // a command in a terminal; the sandbox ends with it
  LongRunning,  // the sandbox's own command; it runs until it is deleted
};

// What has to be on this machine before a sandbox is created.
struct AgentRequirement {
  std::string file;       // may begin with ~
  std::string json;       // names separated by dots: has a value that is not empty
  std::string otherwise;  // for people
};

// A part of the text that is shown when the sandbox is ready; empty if it cannot be determined.
struct ReadyValue {
  std::vector<std::string> command;  // in the sandbox: what it prints
  std::string file;                  // of this machine, may begin with ~
  std::string json;
  std::string prefix;  // before a value that is not empty
};

struct AgentDefinition {
  std::string name;
  std::string description;
  AgentMode mode = AgentMode::Interactive;
  std::vector<std::string> agent_command;  // of an interactive one
  WorkspaceMode workspace = WorkspaceMode::Copy;
  bool skips_missing_tools = false;
  std::vector<AgentRequirement> requirements;
  std::string ready_text;
  std::map<std::string, ReadyValue> ready_values;
  v1::CreateSpec spec;
};

// An error begins with the line and column of its cause.
Result<AgentDefinition> parse_agent_definition(const std::string& name, std::string_view yaml);

// The one of the user's, else the one of agbox. The error names the file, the line and the column.
Result<AgentDefinition> find_agent_definition(const std::string& name);

struct ListedAgent {
  std::string name;
  std::string source;   // the path of the user's file, or "builtin"
  std::string problem;  // why it cannot be used; empty if it can
  AgentDefinition definition;
};
// Sorted by name.
Result<std::vector<ListedAgent>> list_agent_definitions();

// "interactive" and "long-running".
std::string mode_text(AgentMode mode);
std::optional<AgentMode> parse_mode(std::string_view text);

// With ~ as the home directory of this user.
std::filesystem::path expanded(const std::string& path);

}  // namespace agbox::cli
