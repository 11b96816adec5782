// SPDX-License-Identifier: Apache-2.0
#include "cli/workspace/workspace_flag.h"

#include <array>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace agbox::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kTarget = "/workspace";

constexpr std::array<std::pair<std::string_view, WorkspaceMode>, 4> kModes = {
    {{"copy", WorkspaceMode::Copy},
     {"mount", WorkspaceMode::Mount},
     {"mount:ro", WorkspaceMode::MountReadOnly},
     {"none", WorkspaceMode::None}}};

constexpr const char* kRemedy =
    "; run agbox in a project, or choose one with --workspace DIR, or --workspace none";

std::expected<Workspace, std::string> workspace_at(const std::string& path, WorkspaceMode mode) {
  std::error_code problem;
  const fs::path directory = fs::canonical(path, problem);
  if (!problem && !fs::is_directory(directory, problem) && !problem) {
    problem = std::make_error_code(std::errc::not_a_directory);
  }
  if (problem) {
    return std::unexpected("--workspace path \"" + path + "\": " + problem.message());
  }
  if (directory == directory.root_path()) {
    return std::unexpected("--workspace rejects root directory: " + directory.string() + kRemedy);
  }
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home != '\0' && directory == fs::canonical(home, problem)) {
    return std::unexpected("--workspace rejects home directory: " + directory.string() + kRemedy);
  }
  return Workspace{.mode = mode, .directory = directory};
}

}  // namespace

std::string workspace_mode_text(WorkspaceMode mode) {
  for (const auto& [name, known] : kModes) {
    if (known == mode) return std::string(name);
  }
  return "none";
}

std::optional<WorkspaceMode> parse_workspace_mode(std::string_view text) {
  for (const auto& [name, mode] : kModes) {
    if (name == text) return mode;
  }
  return std::nullopt;
}

std::expected<Workspace, std::string> current_workspace(WorkspaceMode mode) {
  if (mode == WorkspaceMode::None) return Workspace{};
  return workspace_at(".", mode);
}

std::expected<Workspace, std::string> parse_workspace_flag(const std::string& text) {
  if (text.empty()) return std::unexpected("--workspace must not be empty");
  if (const auto mode = parse_workspace_mode(text)) return current_workspace(*mode);
  for (const auto& [name, mode] : kModes) {
    const std::string suffix = ":" + std::string(name);
    if (mode == WorkspaceMode::None || !text.ends_with(suffix) || text.size() == suffix.size()) {
      continue;
    }
    return workspace_at(text.substr(0, text.size() - suffix.size()), mode);
  }
  return workspace_at(text, WorkspaceMode::Copy);
}

void add_workspace(v1::CreateSpec& spec, const Workspace& workspace) {
  if (workspace.mode == WorkspaceMode::None) return;
  if (workspace.mode == WorkspaceMode::Copy) {
    v1::CopySpec& copy = *spec.add_copies();
    copy.set_source(workspace.directory.string());
    copy.set_target(kTarget);
    for (int i = spec.copies_size() - 1; i > 0; --i) spec.mutable_copies()->SwapElements(i, i - 1);
    return;
  }
  v1::MountSpec& mount = *spec.add_mounts();
  mount.set_source(workspace.directory.string());
  mount.set_target(kTarget);
  mount.set_writable(workspace.mode == WorkspaceMode::Mount);
  for (int i = spec.mounts_size() - 1; i > 0; --i) spec.mutable_mounts()->SwapElements(i, i - 1);
}

}  // namespace agbox::cli
