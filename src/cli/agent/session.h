// SPDX-License-Identifier: Apache-2.0
// Runs an agent in a sandbox of its own. An interactive one has the terminal; when it ends, what it
// changed in a copied workspace is saved, and the sandbox is deleted. A long-running one is left
// running.
#pragma once

#include <agbox/raw_client.h>

#include "cli/agent/agent_flags.h"
#include "cli/console.h"

namespace agbox::cli {

// Returns the exit code.
int run_agent(Console& console, AgentPlan plan);

// Runs a command in a sandbox and returns what it prints; for commands that print little. The error
// says how it ended, and `error_output` gets what it wrote to stderr.
std::expected<std::string, std::string> output_of_command(const sdk::RawClient& client,
                                                          const std::string& sandbox_id,
                                                          const std::vector<std::string>& command,
                                                          std::string& error_output);

}  // namespace agbox::cli
