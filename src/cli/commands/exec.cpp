// SPDX-License-Identifier: Apache-2.0
// agbox exec: the commands that run commands in sandboxes, show them and end them.
#include "cli/commands/commands.h"

namespace agbox::cli {

void add_exec(CommandLine& line, CLI::App& parent) {
  CLI::App& command = *parent.add_subcommand("exec", "Run, show and cancel commands in sandboxes");
  line.needs_subcommand(command);
  add_exec_run(line, command);
  add_exec_get(line, command);
  add_exec_cancel(line, command);
  add_exec_list(line, command);
}

}  // namespace agbox::cli
