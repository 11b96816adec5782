// SPDX-License-Identifier: Apache-2.0
// agbox sandbox: parent of the commands that create, use, show, stop and delete sandboxes.
#include "cli/commands/commands.h"

namespace agbox::cli {

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

}  // namespace agbox::cli
