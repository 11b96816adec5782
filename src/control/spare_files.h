// SPDX-License-Identifier: Apache-2.0
// Empty files for the output of execs, made ahead on a thread of their own. To make a file can cost
// ext4 most of a millisecond, to rename one hardly anything: with spare files the control thread
// only renames. They lie in a folder beside those of the sandboxes, which no sandbox sees.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace agbox {

class SpareFiles {
 public:
  // Below this root. Nothing is made before the first take().
  explicit SpareFiles(const std::filesystem::path& root);
  SpareFiles(const SpareFiles&) = delete;
  // Removes those that nobody took.
  ~SpareFiles();

  const std::filesystem::path& root() const { return root_; }

  // Moves a spare file to `name` in `folder`, a descriptor; it is open for appending. None where
  // there is no spare, or where something has that name: the caller tries to make the file itself,
  // and learns why.
  UniqueFd take(int folder, const std::string& name);

 private:
  struct Spare {
    std::string name;
    UniqueFd fd;
  };

  void run();
  UniqueFd open_folder() const;
  // None where it cannot be made: then nothing is tried before the next take().
  UniqueFd make(const std::string& name) const;

  const std::filesystem::path root_;
  const std::filesystem::path folder_;

  std::mutex mutex_;  // guards the four below
  std::condition_variable something_to_do_;
  UniqueFd folder_fd_;
  std::vector<Spare> spares_;
  bool wants_more_ = false;
  bool is_ending_ = false;

  std::thread thread_;  // begun by the first take(), joined by the destructor
};

}  // namespace agbox
