// SPDX-License-Identifier: Apache-2.0
// What an agent's definition asks of this machine.
#pragma once

#include <optional>
#include <string>

#include "cli/agent/definition.h"
#include "cli/console.h"

namespace agbox::cli {

// The text, number or truth value in a JSON file below names that are separated by dots; nullopt if
// there is none or it is empty. An object or a list that is not empty is an empty text.
std::optional<std::string> json_value(const std::string& file, const std::string& names);

// Why the agent cannot run here; empty if it can.
std::string unmet_requirement(const AgentDefinition& agent);

// Removes the builtin tools whose required file or directory does not exist, and reports each.
void skip_missing_tools(Console& console, const std::string& agent, v1::CreateSpec& spec);

}  // namespace agbox::cli
