// SPDX-License-Identifier: Apache-2.0
// The tree of commands: built once per run, then asked to parse, to explain itself (help, usage) or
// to write its own completion. What a command does is in commands/, one file each.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/console.h"

namespace agbox::cli {

// What scripts rely on. `exec run` also ends with the code of its command.
enum ExitCode : int { kSuccess = 0, kRuntimeError = 1, kUsageError = 2 };

using Action = std::function<int(Console&)>;

class CommandLine {
 public:
  // Gives `parent` one more subcommand, with its flags and its action.
  using AddCommand = void (*)(CommandLine& line, CLI::App& parent);

  explicit CommandLine(std::span<const AddCommand> commands);

  CLI::App& root() { return root_; }

  // For commands: what happens when `command` was asked for.
  void on(CLI::App& command, Action action);
  // For commands that are nothing without one of their subcommands.
  void needs_subcommand(CLI::App& command);

  // `arguments` without the program's name. Returns the exit code.
  int run(std::vector<std::string> arguments, Console& console);

 private:
  int parse_and_act(std::vector<std::string> arguments, Console& console);

  CLI::App root_;
  bool wants_version_ = false;
  Action action_;
};

// The commands of agbox.
std::span<const CommandLine::AddCommand> all_commands();

}  // namespace agbox::cli
