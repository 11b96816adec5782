// SPDX-License-Identifier: Apache-2.0
// agbox completion bash|zsh|fish: a script that lets the shell complete our commands.
#include "cli/commands/commands.h"
#include "cli/completion_script.h"

namespace agbox::cli {

namespace {

void add_shell(CommandLine& line, CLI::App& parent, const std::string& name,
               const std::string& description, std::string (*script)(const CLI::App&)) {
  CLI::App& command = *parent.add_subcommand(name, description);
  line.on(command, [&line, script](Console& console) {
    console.out(script(line.root()));
    return static_cast<int>(kSuccess);
  });
}

}  // namespace

void add_completion(CommandLine& line, CLI::App& parent) {
  CLI::App& command =
      *parent.add_subcommand("completion", "Print a script that completes commands in a shell");
  line.needs_subcommand(command);
  add_shell(line, command, "bash", "For bash: source <(agbox completion bash)", bash_completion);
  add_shell(line, command, "fish", "For fish: agbox completion fish | source", fish_completion);
  add_shell(line, command, "zsh", "For zsh: source <(agbox completion zsh)", zsh_completion);
}

}  // namespace agbox::cli
