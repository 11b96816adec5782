// SPDX-License-Identifier: Apache-2.0
// What is different between two trees of a record, and how a directory of this machine gets it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/workspace/record.h"

namespace agbox::cli {

struct ChangedFile {
  std::string path;         // bytes of a sandbox
  char status = 'M';        // as git has it: A, D, M, or T for another kind
  std::uint64_t added = 0;  // lines; of a binary file none
  std::uint64_t deleted = 0;
  bool is_binary = false;
  bool is_link = false;  // now
  bool was_link = false;
  std::string old_object = {};   // empty if it is new
  std::string object = {};       // empty if it is deleted
  std::string link_target = {};  // if it is a link
};

class WorkspaceChanges {
 public:
  // Two references of the record's store. Both exist.
  WorkspaceChanges(const WorkspaceRecord& record, std::string from, std::string to)
      : record_(record), from_(std::move(from)), to_(std::move(to)) {}

  // As `git apply` and people read it.
  Result<std::string> patch() const;
  // A line per file, with a sum at the end.
  Result<std::string> stat(std::size_t columns) const;
  // "3 files changed, 4 insertions(+), 2 deletions(-)"; empty if there are none.
  Result<std::string> summary() const;
  Result<std::vector<ChangedFile>> files() const;

  // Why the record's workspace cannot take them without losing something, and nothing if it can:
  // what its user has not committed, or without git what has changed since it went in.
  Result<std::string> uncommitted() const;
  // Directories that they turn into repositories without a .git: git would use the configuration of
  // one, which can name programs, as soon as it is run in there.
  Result<std::vector<std::string>> hidden_repositories() const;
  // All of them, or nothing and an error that names what does not fit.
  Result<> apply(const std::filesystem::path& directory) const;

 private:
  Result<std::string> changed_since() const;

  const WorkspaceRecord& record_;
  std::string from_;
  std::string to_;
};

// Whether a link at `path` with this target leads out of the directory that `path` is relative to.
bool leads_out(std::string_view path, std::string_view target);

}  // namespace agbox::cli
