// SPDX-License-Identifier: Apache-2.0
// What stop and resume have in common: one sandbox is asked to go to another state, and somebody
// waits until it is there.
#pragma once

#include <agbox/sandbox_wait.h>

#include <string>

#include "cli/command_line.h"

namespace agbox::cli {

struct SandboxMove {
  const char* verb;         // "stop"
  const char* description;  // of the command
  const char* done;         // "stopped"
  sdk::SandboxGoal goal;
  sdk::Result<v1::AcceptedResponse> (*ask)(const sdk::RawClient& client,
                                           const std::string& sandbox_id);
};

// Adds the command `<verb> <sandbox_id> [--json]`. The move lives as long as the program.
void add_sandbox_move(CommandLine& line, CLI::App& parent, const SandboxMove& move);

}  // namespace agbox::cli
