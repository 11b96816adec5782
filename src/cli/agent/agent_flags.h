// SPDX-License-Identifier: Apache-2.0
// The flags of all commands that run an agent, and the session that they stand for.
#pragma once

#include <CLI/CLI.hpp>
#include <expected>
#include <string>
#include <vector>

#include "cli/agent/definition.h"
#include "cli/create_flags.h"
#include "cli/detach_keys.h"
#include "cli/workspace/workspace_flag.h"

namespace agbox::cli {

struct AgentPlan {
  AgentDefinition agent;
  Workspace workspace;
  v1::CreateSandboxRequest request;  // without the workspace
  DetachKeys detach_keys;
  bool asks_about_git = false;  // before a directory that is no repository is copied
  bool keeps = false;
  bool answers_yes = false;
  bool may_ask = true;
  bool starts_daemon = true;
};

class AgentFlags {
 public:
  explicit AgentFlags(CLI::App& command);

  // Of an agent with a definition.
  std::expected<AgentPlan, CreateRefusal> plan(AgentDefinition agent) const;
  // Of the command in --command alone.
  std::expected<AgentPlan, CreateRefusal> plan_of_command() const;
  bool has_command() const { return command_flag_->count() > 0; }

 private:
  std::expected<AgentPlan, CreateRefusal> planned(AgentDefinition agent) const;
  std::expected<std::vector<std::string>, CreateRefusal> words() const;

  CreateFlags create_;
  CLI::Option* command_flag_ = nullptr;
  CLI::Option* workspace_flag_ = nullptr;
  std::string command_;
  std::string mode_;
  std::string workspace_;
  std::string detach_keys_ = kDefaultDetachKeys;
  bool keep_ = false;
  bool yes_ = false;
  bool no_input_ = false;
  bool no_start_ = false;
};

}  // namespace agbox::cli
