// SPDX-License-Identifier: Apache-2.0
// What went into the copied workspace of a session, and what came out of it: a directory of our own
// below the user's state directory, which outlives the sandbox.
#pragma once

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/workspace/git.h"

namespace agbox::cli {

// Commits of the record's store.
inline constexpr const char* kBaseTree = "refs/agbox/base";        // what went in
inline constexpr const char* kSavedTree = "refs/agbox/saved";      // what was seen last
inline constexpr const char* kAppliedTree = "refs/agbox/applied";  // what the workspace has of it

// How long a record is kept after the last time that it was written, if its sandbox is gone.
inline constexpr std::chrono::days kRecordLifetime{30};

// Paths and directories that are not part of a workspace's tree.
class PathSet {
 public:
  PathSet() = default;
  // As git prints them: each ends with a NUL, a directory also with a slash.
  explicit PathSet(std::string_view listed);

  bool contains(std::string_view path) const;

 private:
  std::set<std::string, std::less<>> files_;
  std::set<std::string, std::less<>> directories_;
};

class WorkspaceRecord {
 public:
  // Of a new session. Nothing is kept of an older one with this ID.
  static Result<WorkspaceRecord> create(const std::string& sandbox_id,
                                        const std::filesystem::path& workspace,
                                        const std::string& agent);
  // All records, the last written first.
  static Result<std::vector<WorkspaceRecord>> list();
  // By the sandbox's ID or its beginning.
  static Result<WorkspaceRecord> find(const std::string& given);

  const std::string& sandbox_id() const { return sandbox_id_; }
  const std::filesystem::path& workspace() const { return workspace_; }
  const std::string& agent() const { return agent_; }
  std::filesystem::file_time_type written_at() const { return written_at_; }
  GitStore store() const { return GitStore(directory_ / "store.git"); }
  // What git ignored in the workspace when the session began.
  Result<PathSet> ignored() const;
  // An empty directory of the record.
  Result<std::filesystem::path> scratch() const;

  // Excludes other processes as long as the descriptor is open.
  Result<UniqueFd> lock() const;
  // It was written now.
  void touch() const;
  void remove() const;

 private:
  explicit WorkspaceRecord(std::filesystem::path directory) : directory_(std::move(directory)) {}
  static Result<std::filesystem::path> root();
  static Result<WorkspaceRecord> load(const std::filesystem::path& directory);

  std::filesystem::path directory_;
  std::string sandbox_id_;
  std::filesystem::path workspace_;
  std::string agent_;
  std::filesystem::file_time_type written_at_;
};

// Whether git finds a repository there.
bool is_in_git_work_tree(const std::filesystem::path& directory);

}  // namespace agbox::cli
