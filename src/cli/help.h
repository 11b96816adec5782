// SPDX-License-Identifier: Apache-2.0
// Usage and help texts, generated from the command tree.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace agbox::cli {

// "agbox exec run"
std::string command_path(const CLI::App& command);

// The documented subcommands, sorted by name.
std::vector<const CLI::App*> visible_subcommands(const CLI::App& command);

std::vector<const CLI::Option*> arguments_of(const CLI::App& command);
// The options that are not positional arguments.
std::vector<const CLI::Option*> flags_of(const CLI::App& command);
// The only values that it accepts, from its type "A|B|C"; none if any value is possible.
std::vector<std::string> choices_of(const CLI::Option& flag);
bool takes_value(const CLI::Option& flag);

// "-h, --help" or "--image IMAGE"
std::string flag_text(const CLI::Option& flag);
// "agbox exec run <sandbox_id> [flags] -- <command> [args...]". Two lines for a command that also
// is the parent of others.
std::string usage_line(const CLI::App& command);

// Usage line, arguments, subcommands and flags.
std::string usage_text(const CLI::App& command);
// The description, followed by the usage.
std::string help_text(const CLI::App& command);

}  // namespace agbox::cli
