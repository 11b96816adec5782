// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/edit_distance.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/help.h"

namespace agbox::cli {

namespace {

void add_exec(CommandLine& line, CLI::App& parent) {
  CLI::App& command =
      *parent.add_subcommand("exec", "Manage execs: commands that run in sandboxes");
  line.requires_subcommand(command);
  add_exec_run(line, command);
  add_exec_get(line, command);
  add_exec_cancel(line, command);
  add_exec_list(line, command);
}

void add_sandbox(CommandLine& line, CLI::App& parent) {
  CLI::App& command = *parent.add_subcommand("sandbox", "Manage sandboxes");
  line.requires_subcommand(command);
  add_sandbox_create(line, command);
  add_sandbox_list(line, command);
  add_sandbox_get(line, command);
  add_sandbox_delete(line, command);
  add_sandbox_stop(line, command);
  add_sandbox_resume(line, command);
  add_sandbox_exec(line, command);
}

constexpr std::array kCommands = {add_attach,  add_completion, add_cp,     add_doctor,
                                  add_events,  add_exec,       add_logs,   add_ping,
                                  add_sandbox, add_stats,      add_version};

// A suggestion that differs more is a guess.
constexpr std::size_t kSuggestedDistance = 2;

// The innermost command that was parsed.
const CLI::App& selected(const CLI::App& root) {
  const CLI::App* command = &root;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  return *command;
}

// "exec run"
std::string name_without_program(const CLI::App& command) {
  const std::string path = command_path(command);
  return path.substr(path.find(' ') + 1);
}

bool is_flag(const std::string& word) {
  return word.starts_with("-") && word != "-" && word != "--";
}

struct Leftover {
  const CLI::App* command;
  std::vector<std::string> arguments;
};

// The first arguments that a command did not accept.
std::optional<Leftover> leftover(const CLI::App& root) {
  for (const CLI::App* command = &root;;) {
    auto arguments = command->remaining();
    if (!arguments.empty()) return Leftover{command, std::move(arguments)};
    if (command->get_subcommands().empty()) return std::nullopt;
    command = command->get_subcommands().back();
  }
}

// Names that the user may have meant: mistyped or not typed to the end.
std::vector<std::string> suggestions(const CLI::App& command, std::string_view word) {
  std::vector<std::string> names;
  for (const CLI::App* child : visible_subcommands(command)) {
    const std::string& name = child->get_name();
    const std::size_t longest_difference = std::min(kSuggestedDistance, name.size() / 2);
    const bool is_close = word.size() <= name.size() + kSuggestedDistance &&
                          edit_distance(word, name) <= longest_difference;
    if (is_close || (!word.empty() && name.starts_with(word))) names.push_back(name);
  }
  return names;
}

// Existing clients rely on the first line.
int refuse_command(Console& console, const CLI::App& command, const std::string& word) {
  const std::string path = command_path(command);
  std::string message = "Error: unknown command \"" + word + "\" for \"" + path + "\"";
  const auto names = suggestions(command, word);
  if (!names.empty()) message += "\n\nDid you mean this?";
  for (const std::string& name : names) message += "\n  " + path + " " + name;
  console.error(message);
  return kUsageError;
}

int usage_error(Console& console, const CLI::App& command, const std::string& message) {
  // The usage text ends with a newline and the console adds another.
  std::string usage = usage_text(command);
  usage.pop_back();
  console.error("Error: " + message + "\n\n" + usage);
  return kUsageError;
}

// CLI11 calls a flag without its value "1 required IMAGE missing".
std::string in_plain_words(const CLI::ParseError& error, const CLI::App& command) {
  for (const CLI::Option* flag : flags_of(command)) {
    const std::string type = flag->get_type_name();
    const auto lacks_value = CLI::ArgumentMismatch::TypedAtLeast(flag->get_name(), 1, type);
    if (std::string_view(error.what()) == lacks_value.what()) {
      return flag->get_name() + " needs a value: " + type;
    }
  }
  return error.what();
}

// Too few or too many arguments. Existing clients rely on the text.
int refuse_count(Console& console, const CLI::App& command, std::size_t received) {
  const auto arguments = arguments_of(command);
  const auto required = std::ranges::count_if(
      arguments, [](const CLI::Option* argument) { return argument->get_required(); });
  const std::string least = std::to_string(required);
  const std::string most = std::to_string(arguments.size());
  std::string accepted = "between " + least + " and " + most;
  if (least == most) {
    accepted = most;
  } else if (required == 0) {
    accepted = "at most " + most;
  }
  return usage_error(console, command,
                     "accepts " + accepted + " arg(s), received " + std::to_string(received));
}

std::size_t given_arguments(const CLI::App& command) {
  return static_cast<std::size_t>(std::ranges::count_if(
      arguments_of(command), [](const CLI::Option* argument) { return argument->count() > 0; }));
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
  if (!visible_subcommands(command).empty()) return refuse_command(console, command, first);
  return refuse_count(console, command, given_arguments(command) + left.arguments.size());
}

bool lacks_argument(const CLI::App& command) {
  return std::ranges::any_of(arguments_of(command), [](const CLI::Option* argument) {
    return argument->get_required() && argument->count() == 0;
  });
}

std::string version_line() {
  return "agbox " AGBOX_VERSION "\n";
}

}  // namespace

std::span<const CommandLine::AddCommand> all_commands() {
  return kCommands;
}

CommandLine::CommandLine(std::span<const AddCommand> commands)
    : root_("Run coding agents in sandboxes on this machine", "agbox") {
  root_.set_help_flag("-h,--help", "Print help");
  root_.add_flag("--version", wants_version_, "Print the agbox version");
  for (const AddCommand add : commands) add(*this, root_);
  add_help(*this, root_);
}

void CommandLine::on(CLI::App& command, Action action) {
  // CLI11 calls back for every command on the path; only the last one was selected.
  command.callback([this, &command, action = std::move(action)] {
    if (command.get_subcommands().empty()) action_ = action;
  });
}

void CommandLine::requires_subcommand(CLI::App& command) {
  on(command, [&command](Console& console) {
    std::string names;
    for (const CLI::App* child : command.get_subcommands({})) {  // in the order they were added
      names += (names.empty() ? "" : ", ") + child->get_name();
    }
    console.error(name_without_program(command) + " command requires a subcommand\n" +
                  "available subcommands: " + names);
    return static_cast<int>(kUsageError);
  });
}

void CommandLine::accepts_args_after_dashes(CLI::App& command, std::vector<std::string>& args) {
  command.footer("[-- <command> [args...]]");  // shown at the end of the usage line
  args_after_dashes_[&command] = &args;
}

void CommandLine::requires_args_after_dashes(CLI::App& command, std::vector<std::string>& args) {
  accepts_args_after_dashes(command, args);
  command.footer("-- <command> [args...]");
  requires_args_.insert(&command);
}

std::optional<std::string> CommandLine::missing_args(const CLI::App& command) const {
  if (!requires_args_.contains(&command)) return std::nullopt;
  const std::string name = name_without_program(command);
  if (args_after_dashes_.at(&command)->empty()) return name + " requires -- <command> [args...]";
  if (given_arguments(command) == 1 && command.remaining().empty()) return std::nullopt;
  return name + " requires <sandbox_id> -- <command> [args...]";
}

void CommandLine::take_args_after_dashes(std::vector<std::string>& arguments) {
  const auto dashes = std::ranges::find(arguments, "--");
  const CLI::App* command = &root_;
  for (auto word = arguments.begin(); word != dashes; ++word) {
    for (const CLI::App* child : visible_subcommands(*command)) {
      if (child->get_name() == *word) command = child;
    }
  }
  const auto target = args_after_dashes_.find(command);
  if (dashes == arguments.end() || target == args_after_dashes_.end()) return;
  target->second->assign(dashes + 1, arguments.end());
  arguments.erase(dashes, arguments.end());
}

int CommandLine::run(std::vector<std::string> arguments, Console& console) {
  const int code = parse_and_act(std::move(arguments), console);
  const bool was_written = console.flush();
  return code == kSuccess && !was_written ? kRuntimeError : code;
}

int CommandLine::parse_and_act(std::vector<std::string> arguments, Console& console) {
  take_args_after_dashes(arguments);
  std::ranges::reverse(arguments);  // as CLI11 expects them
  try {
    root_.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    // Help for a command that does not exist is not the help of its parent.
    const auto left = leftover(root_);
    if (left && !is_flag(left->arguments.front()) && !visible_subcommands(*left->command).empty()) {
      return refuse_leftover(console, *left);
    }
    console.out(help_text(selected(root_)));
    return kSuccess;
  } catch (const CLI::ParseError& error) {
    // Report an unknown argument rather than what is missing because of it.
    const auto left = leftover(root_);
    const CLI::App& command = selected(root_);
    if (!left || !is_flag(left->arguments.front())) {
      if (const auto missing = missing_args(command)) return refuse_usage(console, *missing);
    }
    if (left) return refuse_leftover(console, *left);
    if (lacks_argument(command)) return refuse_count(console, command, given_arguments(command));
    return usage_error(console, command, in_plain_words(error, command));
  }
  if (wants_version_) {
    console.out(version_line());
    return kSuccess;
  }
  if (const auto missing = missing_args(selected(root_))) return refuse_usage(console, *missing);
  if (action_) return action_(console);
  console.out(version_line() + "Run \"agbox --help\" for usage information.\n");
  return kSuccess;
}

}  // namespace agbox::cli
