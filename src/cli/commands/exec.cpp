// SPDX-License-Identifier: Apache-2.0
// agbox exec: parent of the commands that run, show and cancel execs.
#include "cli/commands/commands.h"

namespace agbox::cli {

void add_exec(CommandLine& line, CLI::App& parent) {
  CLI::App& command =
      *parent.add_subcommand("exec", "Manage execs: commands that run in sandboxes");
  line.requires_subcommand(command);
  add_exec_run(line, command);
  add_exec_get(line, command);
  add_exec_cancel(line, command);
  add_exec_list(line, command);
}

}  // namespace agbox::cli
