// SPDX-License-Identifier: Apache-2.0
// All fixed paths of the project. A pure function of platform and environment, so that the macOS
// paths are tested on Linux too. Nothing overrides these paths.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/result.h"

namespace agbox {

enum class Platform { Linux, MacOs };

using Environment = std::map<std::string, std::string>;

struct FixedPaths {
  std::filesystem::path runtime_directory;  // 0700, holds socket and lock
  std::filesystem::path socket;
  std::filesystem::path lock;
  std::filesystem::path config_file;
  std::filesystem::path store;
  std::filesystem::path default_exec_output_root;
  std::filesystem::path default_state_root;
};

Result<FixedPaths> resolve_fixed_paths(Platform platform, const Environment& environment);

// The socket alone, for clients: needs neither HOME nor a data directory if XDG_RUNTIME_DIR is set.
Result<std::filesystem::path> resolve_socket_path(Platform platform,
                                                  const Environment& environment);

// As far as `agbox doctor` can tell without a runtime directory.
Result<std::filesystem::path> resolve_config_file(Platform platform,
                                                  const Environment& environment);
Result<std::filesystem::path> resolve_store(Platform platform, const Environment& environment);
// Of agbox alone: the agents that the user added, and what went into copied workspaces.
Result<std::filesystem::path> resolve_agent_definitions(Platform platform,
                                                        const Environment& environment);
Result<std::filesystem::path> resolve_workspace_records(Platform platform,
                                                        const Environment& environment);

// The platform and environment of this process.
Platform current_platform();
Environment current_environment();

}  // namespace agbox
