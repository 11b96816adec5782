// SPDX-License-Identifier: Apache-2.0
// The implementation shared by stop and resume: requests a state change of one sandbox and waits
// until it is reached.
#pragma once

#include <agbox/sandbox_wait.h>

#include <string>

#include "cli/command_line.h"

namespace agbox::cli {

struct SandboxStateCommand {
  const char* verb;         // "stop"
  const char* description;  // for help
  const char* done;         // "stopped"
  sdk::SandboxGoal goal;
  sdk::Result<v1::AcceptedResponse> (*send)(const sdk::RawClient& client,
                                            const std::string& sandbox_id);
};

// Adds the command `<verb> <sandbox_id> [--json]`. `spec` must outlive the command line.
void add_sandbox_state_command(CommandLine& line, CLI::App& parent,
                               const SandboxStateCommand& spec);

}  // namespace agbox::cli
