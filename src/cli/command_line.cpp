// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/help.h"

namespace agbox::cli {

namespace {

constexpr std::array kCommands = {add_completion, add_ping, add_version};

// The command that the arguments lead to, as far as they could be understood.
const CLI::App& addressed(const CLI::App& root) {
  const CLI::App* command = &root;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  return *command;
}

struct Leftover {
  const CLI::App* command;
  std::vector<std::string> arguments;
};

// The arguments that no command took, with the command that they were given to.
std::optional<Leftover> leftover(const CLI::App& root) {
  for (const CLI::App* command = &root;;) {
    auto arguments = command->remaining();
    if (!arguments.empty()) return Leftover{command, std::move(arguments)};
    if (command->get_subcommands().empty()) return std::nullopt;
    command = command->get_subcommands().back();
  }
}

int usage_error(Console& console, const CLI::App& command, const std::string& message) {
  // Text of ours ends with a newline already; the console adds its own.
  std::string usage = usage_text(command);
  usage.pop_back();
  console.error("Error: " + message + "\n\n" + usage);
  return kUsageError;
}

int refuse_leftover(Console& console, const Leftover& left) {
  const CLI::App& command = *left.command;
  const std::string& first = left.arguments.front();
  if (first.starts_with("--") && first != "--") {
    return usage_error(console, command, "unknown flag: " + first.substr(0, first.find('=')));
  }
  if (first.starts_with("-") && first.size() > 1 && first != "--") {
    return usage_error(console, command,
                       "unknown shorthand flag: '" + first.substr(1, 1) + "' in " + first);
  }
  if (!visible_subcommands(command).empty()) {
    console.error("Error: unknown command \"" + first + "\" for \"" + command_path(command) + "\"");
    return kUsageError;
  }
  const auto arguments =
      command.get_options([](const CLI::Option* option) { return option->get_positional(); });
  return usage_error(console, command,
                     "accepts " + std::to_string(arguments.size()) + " arg(s), received " +
                         std::to_string(arguments.size() + left.arguments.size()));
}

std::string version_line() {
  return "agbox " AGBOX_VERSION "\n";
}

}  // namespace

std::span<const CommandLine::AddCommand> all_commands() {
  return kCommands;
}

CommandLine::CommandLine(std::span<const AddCommand> commands)
    : root_("Run coding agents in sandboxes on this machine.", "agbox") {
  root_.set_help_flag("-h,--help", "Show this help");
  root_.add_flag("--version", wants_version_, "Show the version of agbox");
  for (const AddCommand add : commands) add(*this, root_);
}

void CommandLine::on(CLI::App& command, Action action) {
  // CLI11 calls back for every command on the way down; only the last one was asked for.
  command.callback([this, &command, action = std::move(action)] {
    if (command.get_subcommands().empty()) action_ = action;
  });
}

void CommandLine::needs_subcommand(CLI::App& command) {
  on(command, [&command](Console& console) {
    std::string names;
    for (const CLI::App* child : visible_subcommands(command)) {
      names += (names.empty() ? "" : ", ") + child->get_name();
    }
    const std::string path = command_path(command);
    console.error(path.substr(path.find(' ') + 1) + " command requires a subcommand\n" +
                  "available subcommands: " + names);
    return static_cast<int>(kUsageError);
  });
}

int CommandLine::run(std::vector<std::string> arguments, Console& console) {
  const int code = parse_and_act(std::move(arguments), console);
  const bool was_written = console.flush();
  return code == kSuccess && !was_written ? kRuntimeError : code;
}

int CommandLine::parse_and_act(std::vector<std::string> arguments, Console& console) {
  std::ranges::reverse(arguments);  // as CLI11 wants them
  try {
    root_.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    console.out(help_text(addressed(root_)));
    return kSuccess;
  } catch (const CLI::ParseError& error) {
    // An unknown word explains more than what is missing because of it.
    if (const auto left = leftover(root_)) return refuse_leftover(console, *left);
    return usage_error(console, addressed(root_), error.what());
  }
  if (wants_version_) {
    console.out(version_line());
    return kSuccess;
  }
  if (action_) return action_(console);
  console.out(version_line() + "Run \"agbox --help\" for usage information.\n");
  return kSuccess;
}

}  // namespace agbox::cli
