// SPDX-License-Identifier: Apache-2.0
// agbox manual: prints the man page of all commands. For the installation, so it is not listed.
#include "cli/manual.h"

#include "cli/commands/commands.h"

namespace agbox::cli {

void add_manual(CommandLine& line, CLI::App& parent) {
  CLI::App& command = *parent.add_subcommand(
      "manual", "Print the man page of all commands: agbox manual | man -l -");
  command.group("");
  line.on(command, [&line](Console& console) {
    console.out(man_page(line.root()));
    return static_cast<int>(kSuccess);
  });
}

}  // namespace agbox::cli
