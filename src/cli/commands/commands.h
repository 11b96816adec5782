// SPDX-License-Identifier: Apache-2.0
// The commands of agbox, one file each: add_<name>() describes the command to the tree, and its
// action lives beside it. command_line.cpp has the table.
#pragma once

#include "cli/command_line.h"

namespace agbox::cli {

void add_completion(CommandLine& line, CLI::App& parent);
void add_ping(CommandLine& line, CLI::App& parent);
void add_version(CommandLine& line, CLI::App& parent);

}  // namespace agbox::cli
