// SPDX-License-Identifier: Apache-2.0
// The tree of commands: built once per run, then asked to parse, to explain itself (help, usage) or
// to write its own completion. What a command does is in commands/, one file each.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cli/console.h"

namespace agbox::cli {

// What scripts rely on. `exec run` also ends with the code of its command, and what a signal ended
// with 128 and the signal's number.
enum ExitCode : int {
  kSuccess = 0,
  kRuntimeError = 1,
  kUsageError = 2,
  kCommandLost = 125,  // `exec run`: the command has no exit code to end with
};

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
  // For commands that pass on what stands behind "--", whatever it looks like.
  void takes_words_after_dashes(CLI::App& command, std::vector<std::string>& words);
  // For commands that are nothing without them, nor without their argument.
  void needs_words_after_dashes(CLI::App& command, std::vector<std::string>& words);

  // `arguments` without the program's name. Returns the exit code.
  int run(std::vector<std::string> arguments, Console& console);

 private:
  int parse_and_act(std::vector<std::string> arguments, Console& console);
  void take_words_after_dashes(std::vector<std::string>& arguments);
  // Nothing where `command` has the words that it cannot do without.
  std::optional<std::string> missing_words(const CLI::App& command) const;

  CLI::App root_;
  bool wants_version_ = false;
  Action action_;
  std::map<const CLI::App*, std::vector<std::string>*> words_after_dashes_;
  std::set<const CLI::App*> needs_words_;
};

// The commands of agbox.
std::span<const CommandLine::AddCommand> all_commands();

}  // namespace agbox::cli
