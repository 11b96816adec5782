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
  CLI::App& command = add_flat_exec(line, parent);
  add_exec_run(line, command);
  add_exec_get(line, command);
  add_exec_cancel(line, command);
  add_exec_list(line, command);
  add_exec_wait(line, command);
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
  add_sandbox_wait(line, command);
}

constexpr std::array kCommands = {
    add_agent,  add_apply,   add_attach, add_builtin_agents, add_completion, add_cp,
    add_daemon, add_diff,    add_doctor, add_events,         add_exec,       add_inspect,
    add_logs,   add_manual,  add_ping,   add_prune,          add_ps,         add_rm,
    add_run,    add_sandbox, add_setup,  add_start,          add_stats,      add_stop,
    add_version};

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

// Whether the user may have meant `name`: `word` is mistyped, or not typed to the end.
bool is_near(std::string_view word, const std::string& name) {
  const std::size_t longest_difference = std::min(kSuggestedDistance, name.size() / 2);
  const bool is_close = word.size() <= name.size() + kSuggestedDistance &&
                        edit_distance(word, name) <= longest_difference;
  return is_close || (!word.empty() && name.starts_with(word));
}

// `near`: the names that the user may have meant.
std::string did_you_mean(const std::vector<std::string>& near, const std::string& before = "") {
  std::string text = near.empty() ? "" : "\n\nDid you mean this?";
  for (const std::string& name : near) text += "\n  " + before + name;
  return text;
}

// Existing clients rely on the first line.
int refuse_command(Console& console, const CLI::App& command, const std::string& word) {
  const std::string path = command_path(command);
  std::vector<std::string> near;
  for (const CLI::App* child : visible_subcommands(command)) {
    if (is_near(word, child->get_name())) near.push_back(child->get_name());
  }
  console.failure("Error: unknown command \"" + word + "\" for \"" + path + "\"" +
                  did_you_mean(near, path + " "));
  return kUsageError;
}

int usage_error(Console& console, const CLI::App& command, const std::string& message) {
  // The usage text ends with a newline and the console adds another.
  std::string usage = usage_text(command);
  usage.pop_back();
  console.failure("Error: " + message);
  console.error("\n" + usage);
  return kUsageError;
}

int refuse_flag(Console& console, const CLI::App& command, const std::string& given) {
  const std::string flag = given.substr(0, given.find('='));
  std::vector<std::string> near;
  for (const CLI::Option* known : flags_of(command)) {
    for (const std::string& name : known->get_lnames()) {
      if (is_near(flag.substr(2), name)) near.push_back("--" + name);
    }
  }
  return usage_error(console, command, "unknown flag: " + flag + did_you_mean(near));
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
  if (first.starts_with("--") && first != "--") return refuse_flag(console, command, first);
  if (first.starts_with("-") && first.size() > 1 && first != "--") {
    return usage_error(console, command,
                       "unknown shorthand flag: '" + first.substr(1, 1) + "' in " + first);
  }
  if (!visible_subcommands(command).empty()) return refuse_command(console, command, first);
  return refuse_count(console, command, given_arguments(command) + left.arguments.size());
}

const CLI::App* subcommand_of(const CLI::App& command, const std::string& word) {
  const auto children = command.get_subcommands({});
  const auto found = std::ranges::find(
      children, word,
      [](const CLI::App* child) -> const std::string& { return child->get_name(); });
  return found == children.end() ? nullptr : *found;
}

// Whether the word after this flag is its value: of "--env", "-e" and "-ite", not of "--env=A=B"
// and
// "-eA=B".
bool takes_next_word(const CLI::App& command, const std::string& word) {
  const auto flags = flags_of(command);
  const auto find = [&flags](bool is_short, const std::string& name) {
    const auto found = std::ranges::find_if(flags, [&](const CLI::Option* flag) {
      const auto& names = is_short ? flag->get_snames() : flag->get_lnames();
      return std::ranges::find(names, name) != names.end();
    });
    return found == flags.end() ? nullptr : *found;
  };
  if (word.starts_with("--")) {
    const CLI::Option* const flag = find(false, word.substr(2));
    return flag != nullptr && takes_value(*flag);
  }
  for (std::size_t i = 1; i < word.size(); ++i) {
    const CLI::Option* const flag = find(true, word.substr(i, 1));
    if (flag == nullptr) return false;
    if (takes_value(*flag)) return i + 1 == word.size();
  }
  return false;
}

// The usage error if the command line has a flag of the parent of `command`: "exec -i list".
std::optional<std::string> misplaced_flag(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  if (parent == nullptr || parent->get_parent() == nullptr) return std::nullopt;
  const auto flags = flags_of(*parent);
  const auto given =
      std::ranges::find_if(flags, [](const CLI::Option* flag) { return flag->count() > 0; });
  if (given == flags.end()) return std::nullopt;
  return (*given)->get_name() + " is a flag of \"" + command_path(*parent) + "\", not of \"" +
         command_path(command) + "\"";
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
  // The name of another command is an ordinary argument of one: "agbox agent claude".
  root_.require_subcommand(0, 1);
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
  on(command, [&command](Console& console) { return refuse_missing_subcommand(console, command); });
}

int CommandLine::refuse_missing_subcommand(Console& console, const CLI::App& command) {
  std::string names;
  for (const CLI::App* child : command.get_subcommands({})) {  // in the order they were added
    names += (names.empty() ? "" : ", ") + child->get_name();
  }
  console.failure(name_without_program(command) + " command requires a subcommand\n" +
                  "available subcommands: " + names);
  return kUsageError;
}

int CommandLine::refuse_unknown_subcommand(Console& console, const CLI::App& command,
                                           const std::string& word) {
  return refuse_command(console, command, word);
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

void CommandLine::accepts_trailing_args(CLI::App& command, std::vector<std::string>& args) {
  accepts_args_after_dashes(command, args);
  command.footer("[--] [<command> [args...]]");
  trailing_args_.insert(&command);
}

void CommandLine::take_args(std::vector<std::string>& arguments) {
  const CLI::App* command = &root_;
  std::size_t given = 0;       // arguments of `command`
  bool has_own_words = false;  // `command` was given an argument or a flag
  bool is_literal = false;     // "--" came before the arguments of `command`
  const auto take = [&](auto first, auto erased) {
    args_after_dashes_.at(command)->assign(first, arguments.end());
    arguments.erase(erased, arguments.end());
  };
  for (auto word = arguments.begin(); word != arguments.end(); ++word) {
    const bool takes_args = args_after_dashes_.contains(command);
    const bool is_trailing = trailing_args_.contains(command);
    if (*word == "--" && !is_literal) {
      if (takes_args && (!is_trailing || given > 0)) return take(word + 1, word);
      if (!is_trailing) return;
      is_literal = has_own_words = true;
      continue;
    }
    if (!is_literal && is_flag(*word)) {
      has_own_words = true;
      if (takes_next_word(*command, *word) && word + 1 != arguments.end()) ++word;
      continue;
    }
    const CLI::App* const child = has_own_words ? nullptr : subcommand_of(*command, *word);
    if (child != nullptr) {
      command = child;
      continue;
    }
    if (is_trailing && given == arguments_of(*command).size()) return take(word, word);
    has_own_words = true;
    ++given;
  }
}

int CommandLine::run(std::vector<std::string> arguments, Console& console) {
  const int code = parse_and_act(std::move(arguments), console);
  const bool was_written = console.flush();
  return code == kSuccess && !was_written ? kRuntimeError : code;
}

int CommandLine::refuse(Console& console, const CLI::ParseError& error) const {
  // Report an unknown argument rather than what is missing because of it.
  const auto left = leftover(root_);
  const CLI::App& command = selected(root_);
  if (const auto misplaced = misplaced_flag(command)) {
    return usage_error(console, command, *misplaced);
  }
  if (!left || !is_flag(left->arguments.front())) {
    if (const auto missing = missing_args(command)) return refuse_usage(console, *missing);
  }
  if (left) return refuse_leftover(console, *left);
  if (lacks_argument(command)) return refuse_count(console, command, given_arguments(command));
  return usage_error(console, command, in_plain_words(error, command));
}

int CommandLine::parse_and_act(std::vector<std::string> arguments, Console& console) {
  take_args(arguments);
  const bool wants_json = std::ranges::find(arguments, "--json") != arguments.end();
  std::ranges::reverse(arguments);  // as CLI11 expects them
  const auto refused = [&](int code) {
    const auto own = refusal_codes_.find(&selected(root_));
    return own == refusal_codes_.end() ? code : static_cast<int>(own->second);
  };
  if (wants_json) console.report_failures_as_json();
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
    return refused(refuse(console, error));
  }
  if (wants_version_) {
    console.out(version_line());
    return kSuccess;
  }
  const CLI::App& command = selected(root_);
  if (const auto misplaced = misplaced_flag(command)) {
    return usage_error(console, command, *misplaced);
  }
  if (const auto missing = missing_args(command)) return refused(refuse_usage(console, *missing));
  if (action_) return action_(console);
  console.out(version_line() + "Run \"agbox --help\" for usage information.\n");
  return kSuccess;
}

}  // namespace agbox::cli
