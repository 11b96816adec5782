// SPDX-License-Identifier: Apache-2.0
// The flags of all commands that run a command in a sandbox: how it runs, and how this terminal is
// connected to it.
#pragma once

#include <agbox/raw_client.h>

#include <CLI/CLI.hpp>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/interactive_session.h"
#include "cli/key_value_flag.h"

namespace agbox::cli {

class ExecFlags {
 public:
  enum class Environment {
    OfExec,     // the command has flags for its environment
    OfSandbox,  // the sandbox's environment is enough
  };

  explicit ExecFlags(CLI::App& command, Environment environment = Environment::OfExec);

  // The words of the command. The error is the message of the usage error.
  std::expected<v1::CreateExecRequest, std::string> request(
      const std::string& sandbox_id, const std::vector<std::string>& command) const;
  // What `-i` and `-t` connect; nullopt if the output is only read. Refused if there is no terminal
  // for -it.
  std::expected<std::optional<InteractiveSession::Options>, std::string> session() const;
  bool is_for_shell() const { return interactive_ && tty_; }
  // On a terminal: that stdin has something which the command does not get.
  void hint_at_unused_stdin(Console& console) const;

 private:
  std::optional<KeyValueFlag> env_overrides_;
  std::string cwd_;
  std::string user_;
  std::string timeout_;
  std::string detach_keys_;
  bool interactive_ = false;
  bool tty_ = false;
};

// As the terminal of agbox.
void set_terminal(v1::Terminal& terminal);

// A shell: bash if the image has it, else sh.
std::vector<std::string> shell_command();

}  // namespace agbox::cli
