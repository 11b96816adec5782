// SPDX-License-Identifier: Apache-2.0
// agbox completion bash|fish|zsh: prints a shell completion script.
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
  CLI::App& command = *parent.add_subcommand("completion", "Print a shell completion script");
  line.requires_subcommand(command);
  add_shell(line, command, "bash", "Completion for bash: source <(agbox completion bash)",
            bash_completion);
  add_shell(line, command, "fish", "Completion for fish: agbox completion fish | source",
            fish_completion);
  add_shell(line, command, "zsh", "Completion for zsh: source <(agbox completion zsh)",
            zsh_completion);
}

}  // namespace agbox::cli
