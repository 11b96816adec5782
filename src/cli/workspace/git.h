// SPDX-License-Identifier: Apache-2.0
// Runs the user's git. What it works on came out of a sandbox, so for a GitStore it sees neither
// configuration, attributes, hooks nor ignore files but those of the store.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace agbox::cli {

struct GitOutput {
  int exit_code = 0;
  std::string out;
  std::string error;  // its messages
};

// A git that runs. It fails unless all input was written and finish() was called.
class GitProcess {
 public:
  GitProcess(int process, UniqueFd input, UniqueFd errors)
      : process_(process), input_(std::move(input)), errors_(std::move(errors)) {}
  GitProcess(GitProcess&& other) noexcept;
  GitProcess& operator=(GitProcess&&) = delete;
  ~GitProcess();

  // Returns 0 or an errno.
  int write(std::string_view bytes) const;
  GitOutput finish();

 private:
  int wait();

  int process_;  // 0 if it was waited for
  UniqueFd input_;
  UniqueFd errors_;
};

// A bare repository of our own.
class GitStore {
 public:
  explicit GitStore(std::filesystem::path directory) : directory_(std::move(directory)) {}

  Result<> create() const;
  // The output of a git that succeeds; its messages are the error otherwise. The input is passed as
  // a file.
  Result<std::string> run(const std::vector<std::string>& arguments,
                          std::string_view input = {}) const;
  // In a work tree, whose .git it does not touch. Any exit code.
  Result<GitOutput> run_in(const std::filesystem::path& work_tree,
                           const std::vector<std::string>& arguments,
                           std::string_view input = {}) const;
  // The ID of a reference's commit, or of reference:path; empty if it does not exist.
  std::string object(const std::string& name) const;
  Result<GitProcess> start_import() const;

  const std::filesystem::path& directory() const { return directory_; }

 private:
  std::vector<std::string> environment(const std::filesystem::path& work_tree) const;

  std::filesystem::path directory_;
};

bool has_git();

// As the user would run it in a repository of theirs, without changing it: with their
// configuration, but no file system monitor, hook or lock.
Result<GitOutput> run_users_git(const std::filesystem::path& directory,
                                const std::vector<std::string>& arguments);

}  // namespace agbox::cli
