// SPDX-License-Identifier: Apache-2.0
// Which directory of this machine an agent works on, and how the sandbox gets it.
#pragma once

#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "agbox/v1/spec.pb.h"

namespace agbox::cli {

enum class WorkspaceMode {
  Copy,           // the sandbox's own; agbox apply brings back what changed
  Mount,          // the directory itself
  MountReadOnly,  // the same, to look at
  None,
};

struct Workspace {
  WorkspaceMode mode = WorkspaceMode::None;
  std::filesystem::path directory;  // absolute, without links; empty for None
};

// "copy", "mount", "mount:ro" and "none".
std::string workspace_mode_text(WorkspaceMode mode);
std::optional<WorkspaceMode> parse_workspace_mode(std::string_view text);

// MODE for the current directory, DIR for a copy of it, or DIR:MODE. The error is the message of
// the usage error.
std::expected<Workspace, std::string> parse_workspace_flag(const std::string& text);
// The same for the current directory.
std::expected<Workspace, std::string> current_workspace(WorkspaceMode mode);

// Adds the workspace to the first of the copies or mounts.
void add_workspace(v1::CreateSpec& spec, const Workspace& workspace);

}  // namespace agbox::cli
