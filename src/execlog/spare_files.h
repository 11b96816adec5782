// SPDX-License-Identifier: Apache-2.0
// Empty files for the output of execs, made ahead on a thread of their own. To make a file can cost
// ext4 most of a millisecond, to rename one hardly anything: with spare files the control thread
// only renames. They are in a directory of this daemon alone, next to those of the sandboxes, which
// no sandbox sees. If it disappears it is made again.
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
  // Below this root, which several daemons may share. Nothing is made before the first take().
  SpareFiles(const std::filesystem::path& root, const std::string& instance_id);
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
  // None if it cannot be made: then nothing is tried before the next take().
  UniqueFd make(const std::string& name) const;

  const std::filesystem::path root_;
  const std::filesystem::path folder_;

  std::mutex mutex_;  // guards the five below
  std::condition_variable something_to_do_;
  UniqueFd folder_fd_;   // changed by the thread alone, which reads it without the mutex
  bool is_gone_ = true;  // the directory is to be made
  std::vector<Spare> spares_;
  bool wants_more_ = false;
  bool is_ending_ = false;

  std::thread thread_;  // begun by the first take(), joined by the destructor
};

}  // namespace agbox
