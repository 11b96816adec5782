// SPDX-License-Identifier: Apache-2.0
// agbox help: prints the help of a command. Its subcommands mirror the command tree, so that
// parsing, suggestions and completion work as for the commands themselves.
#include "cli/help.h"

#include "cli/commands/commands.h"

namespace agbox::cli {

namespace {

void prints_help_of(CommandLine& line, CLI::App& help, const CLI::App& command) {
  line.on(help, [&command](Console& console) {
    console.out(help_text(command));
    return static_cast<int>(kSuccess);
  });
}

void mirror(CommandLine& line, CLI::App& help, const CLI::App& command) {
  for (const CLI::App* child : visible_subcommands(command)) {
    if (child == &help) continue;
    CLI::App& copy = *help.add_subcommand(child->get_name(), child->get_description());
    prints_help_of(line, copy, *child);
    mirror(line, copy, *child);
  }
}

}  // namespace

void add_help(CommandLine& line, CLI::App& parent) {
  CLI::App& command = *parent.add_subcommand("help", "Print help for a command");
  prints_help_of(line, command, parent);
  mirror(line, command, parent);
}

}  // namespace agbox::cli
