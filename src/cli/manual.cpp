// SPDX-License-Identifier: Apache-2.0
#include "cli/manual.h"

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/help.h"

namespace agbox::cli {

namespace {

struct ExitStatus {
  std::string_view code;
  std::string_view meaning;
};

constexpr ExitStatus kExitStatuses[] = {
    {"0", "success"},
    {"1", "the command failed; the reason is on stderr"},
    {"2", "the command line is invalid"},
    {"124", "a --timeout has passed"},
    {"125",
     "of run and exec: agbox failed or the command line is invalid; of exec run and exec "
     "wait: the command has no exit code"},
    {"126, 127", "of commands that run a command: it cannot be run, or was not found"},
    {"130, 143, 129", "agbox was ended by SIGINT (Ctrl-C), SIGTERM or SIGHUP"},
    {"any other", "of commands that run a command: the exit code of the command"},
};

constexpr std::string_view kJson =
    "With --json, results have the fields and names of the API (api/agbox/v1), and streams are one "
    "object per line. A command that fails prints an object with the key error to stdout as well: "
    "message, code (of gRPC), reason and metadata. --format FIELDS prints some of the fields only, "
    "separated by tabs.";

constexpr std::string_view kIds =
    "An ID may be shortened to its beginning wherever the help says so; if several IDs begin so, "
    "they are listed. The commands of agbox sandbox and exec run, get and cancel take whole IDs, "
    "so that a script never meets another sandbox.";

void for_each_leaf(const CLI::App& command, const std::function<void(const CLI::App&)>& visit) {
  const auto children = visible_subcommands(command);
  // One that only is the parent of others has no flag but --help.
  const bool is_command = children.empty() || !arguments_of(command).empty() ||
                          (command.get_parent() != nullptr && flags_of(command).size() > 1);
  if (is_command) visit(command);
  for (const CLI::App* child : children) {
    // Below "agbox help" are the names of all others.
    if (child->get_name() != "help") for_each_leaf(*child, visit);
  }
}

// Names and descriptions of its arguments and flags.
using Row = std::pair<std::string, std::string>;
std::vector<Row> rows_of(const CLI::App& command) {
  std::vector<Row> rows;
  for (const CLI::Option* argument : arguments_of(command)) {
    rows.emplace_back("<" + argument->get_name(true) + ">", argument->get_description());
  }
  for (const CLI::Option* flag : flags_of(command)) {
    const std::string name = flag_text(*flag);
    if (name != "-h, --help") rows.emplace_back(name, flag->get_description());
  }
  return rows;
}

// In roff, "\" and "-" are special, and so are "." and "'" at the start of a line.
std::string roff(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out = "\\&";
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string man_page(const CLI::App& root) {
  std::string out = ".TH AGBOX 1\n.SH NAME\nagbox \\- " + roff(root.get_description()) +
                    "\n.SH SYNOPSIS\n.B agbox\n.I command\n[flags]\n.SH DESCRIPTION\n" +
                    roff(kIds) + "\n.PP\n" + roff(kJson) + "\n.SH COMMANDS\n";
  for_each_leaf(root, [&out](const CLI::App& command) {
    out += ".SS " + roff(usage_line(command)) + "\n" + roff(command.get_description()) + "\n";
    for (const auto& [name, description] : rows_of(command)) {
      out += ".TP\n.B " + roff(name) + "\n" + roff(description) + "\n";
    }
  });
  out += ".SH EXIT STATUS\n";
  for (const ExitStatus& status : kExitStatuses) {
    out += ".TP\n.B " + roff(status.code) + "\n" + roff(status.meaning) + "\n";
  }
  return out;
}

}  // namespace agbox::cli
