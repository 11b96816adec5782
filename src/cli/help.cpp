// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace agbox::cli {

namespace {

using Row = std::pair<std::string, std::string>;

std::string table(const std::string& title, const std::vector<Row>& rows) {
  if (rows.empty()) return "";
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.first.size());
  std::string out = "\n" + title + ":\n";
  for (const auto& [name, description] : rows) {
    out += "  " + name + std::string(width - name.size() + 3, ' ') + description + "\n";
  }
  return out;
}

// "-h, --help" or "    --image TEXT"
std::string flag_column(const CLI::Option& flag) {
  return (flag.get_snames().empty() ? "    " : "") + flag_text(flag);
}

}  // namespace

std::string command_path(const CLI::App& command) {
  if (command.get_parent() == nullptr) return command.get_name();
  return command_path(*command.get_parent()) + " " + command.get_name();
}

std::vector<const CLI::App*> visible_subcommands(const CLI::App& command) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* child : command.get_subcommands({})) {
    if (!child->get_group().empty()) commands.push_back(child);
  }
  std::ranges::sort(commands, {}, [](const CLI::App* child) { return child->get_name(); });
  return commands;
}

std::vector<const CLI::Option*> arguments_of(const CLI::App& command) {
  std::vector<const CLI::Option*> arguments;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) arguments.push_back(option);
  }
  return arguments;
}

std::vector<const CLI::Option*> flags_of(const CLI::App& command) {
  std::vector<const CLI::Option*> flags;
  for (const CLI::Option* option : command.get_options()) {
    if (option->nonpositional() && !option->get_group().empty()) flags.push_back(option);
  }
  return flags;
}

std::vector<std::string> choices_of(const CLI::Option& flag) {
  const std::string type = flag.get_type_name();
  if (!type.contains('|')) return {};
  std::vector<std::string> choices;
  for (const auto choice : type | std::views::split('|')) {
    choices.emplace_back(choice.begin(), choice.end());
  }
  return choices;
}

bool takes_value(const CLI::Option& flag) {
  return flag.get_items_expected_max() > 0;
}

std::string flag_text(const CLI::Option& flag) {
  std::string out;
  for (const std::string& name : flag.get_snames()) out += (out.empty() ? "-" : ", -") + name;
  for (const std::string& name : flag.get_lnames()) out += (out.empty() ? "--" : ", --") + name;
  return takes_value(flag) ? out + " " + flag.get_type_name() : out;
}

std::string usage_line(const CLI::App& command) {
  std::string out = command_path(command);
  const auto arguments = arguments_of(command);
  const bool has_subcommands = !visible_subcommands(command).empty();
  for (const CLI::Option* argument : arguments) {
    std::string name = "<" + argument->get_name(true) + ">";
    if (argument->get_items_expected_max() > 1) name += "...";
    out += argument->get_required() || has_subcommands ? " " + name : " [" + name + "]";
  }
  // A command of its own, and a parent of others.
  const bool is_both = has_subcommands && !arguments.empty();
  if (has_subcommands && !is_both) out += " [command]";
  if (!flags_of(command).empty()) out += " [flags]";
  if (!command.get_footer().empty()) out += " " + command.get_footer();
  return is_both ? out + "\n  " + command_path(command) + " [command]" : out;
}

std::string usage_text(const CLI::App& command) {
  std::vector<Row> arguments;
  for (const CLI::Option* argument : arguments_of(command)) {
    arguments.emplace_back("<" + argument->get_name(true) + ">", argument->get_description());
  }
  std::vector<Row> commands;
  for (const CLI::App* child : visible_subcommands(command)) {
    commands.emplace_back(child->get_name(), child->get_description());
  }
  std::vector<Row> flags;
  for (const CLI::Option* flag : flags_of(command)) {
    flags.emplace_back(flag_column(*flag), flag->get_description());
  }
  std::string out = "Usage:\n  " + usage_line(command) + "\n" + table("Arguments", arguments) +
                    table("Commands", commands) + table("Flags", flags);
  if (!commands.empty()) {
    // Below "agbox help" the command's name is enough.
    const std::string path = command_path(command) + " ";
    const std::string flag = path.contains(" help ") ? "" : " --help";
    out += "\nRun \"" + path + "<command>" + flag + "\" for more information about a command.\n";
  }
  return out;
}

std::string help_text(const CLI::App& command) {
  return command.get_description() + "\n\n" + usage_text(command);
}

}  // namespace agbox::cli
