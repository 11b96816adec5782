// SPDX-License-Identifier: Apache-2.0
// The command tree: parses the command line, runs the selected command, and is the source of help,
// usage and shell completion. The commands themselves are in commands/.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/console.h"

namespace agbox::cli {

// Scripts rely on these. `exec run` also returns the exit code of its command, and an interrupted
// command returns 128 plus the signal number.
enum ExitCode : int {
  kSuccess = 0,
  kRuntimeError = 1,
  kUsageError = 2,
  kTimedOut = 124,    // `exec run --timeout`, as timeout(1)
  kNoExitCode = 125,  // `exec run`: the command has no exit code to pass on
  // `run` and `exec`, as docker's: not the command failed, but agbox. Any other code is the
  // command's.
  kOwnFailure = 125,
};

using Action = std::function<int(Console&)>;

class CommandLine {
 public:
  // Adds a subcommand with its flags and its action to `parent`.
  using AddCommand = void (*)(CommandLine& line, CLI::App& parent);

  explicit CommandLine(std::span<const AddCommand> commands);

  CLI::App& root() { return root_; }

  // Sets the action of `command`.
  void on(CLI::App& command, Action action);
  // Adds a command to `parent` with flags that the parser sets and `act` reads later. Flags that
  // need the command get it.
  template <class Flags>
  std::pair<CLI::App&, Flags&> add(CLI::App& parent, const std::string& name,
                                   const std::string& description,
                                   int (*act)(Console& console, const Flags& flags)) {
    CLI::App& command = *parent.add_subcommand(name, description);
    command.footer("");  // CLI11 gives it that of its parent
    std::shared_ptr<Flags> flags;
    if constexpr (std::is_default_constructible_v<Flags>) {
      flags = std::make_shared<Flags>();
    } else {
      flags = std::make_shared<Flags>(command);
    }
    on(command, [flags, act](Console& console) { return act(console, *flags); });
    return {command, *flags};
  }
  // Makes `command` without a subcommand a usage error.
  void requires_subcommand(CLI::App& command);
  // Stores everything after "--" in `args`, unparsed.
  void accepts_args_after_dashes(CLI::App& command, std::vector<std::string>& args);
  // As above, and makes it a usage error if they or the sandbox ID are missing.
  void requires_args_after_dashes(CLI::App& command, std::vector<std::string>& args);
  // As docker: the first word after the arguments of `command` that is no flag begins the words of
  // a command, which are stored unparsed; "--" before them is optional.
  void accepts_trailing_args(CLI::App& command, std::vector<std::string>& args);
  // The exit code if the command line of `command` is refused, instead of kUsageError.
  void refuses_with(const CLI::App& command, ExitCode code) { refusal_codes_[&command] = code; }

  // Reports that `command` was given no subcommand, or one that does not exist; returns the exit
  // code.
  static int refuse_missing_subcommand(Console& console, const CLI::App& command);
  static int refuse_unknown_subcommand(Console& console, const CLI::App& command,
                                       const std::string& word);

  // `arguments` does not include the program name. Returns the exit code.
  int run(std::vector<std::string> arguments, Console& console);

 private:
  int parse_and_act(std::vector<std::string> arguments, Console& console);
  // Reports why the parser refused the command line; returns the exit code.
  int refuse(Console& console, const CLI::ParseError& error) const;
  void take_args(std::vector<std::string>& arguments);
  // The usage error if `command` lacks arguments that it requires.
  std::optional<std::string> missing_args(const CLI::App& command) const;

  CLI::App root_;
  bool wants_version_ = false;
  Action action_;
  std::map<const CLI::App*, std::vector<std::string>*> args_after_dashes_;
  std::set<const CLI::App*> requires_args_;
  std::set<const CLI::App*> trailing_args_;
  std::map<const CLI::App*, ExitCode> refusal_codes_;
};

// The commands of agbox.
std::span<const CommandLine::AddCommand> all_commands();

}  // namespace agbox::cli
