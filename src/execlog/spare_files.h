// SPDX-License-Identifier: Apache-2.0
// Empty files for the output of execs, created in advance on a separate thread. Creating a file can
// cost ext4 most of a millisecond, renaming one hardly anything: with spare files the control
// thread only renames. They are in a directory of this daemon that no sandbox sees, next to those
// of the sandboxes. If it disappears it is created again.
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
  // Below this root, which several daemons may share. Nothing is created before the first take().
  SpareFiles(const std::filesystem::path& root, const std::string& instance_id);
  SpareFiles(const SpareFiles&) = delete;
  // Removes the unused ones.
  ~SpareFiles();

  const std::filesystem::path& root() const { return root_; }

  // Moves a spare file to `name` in `folder`, a descriptor; it is open for appending. None if there
  // is no spare, or if that name exists: the caller then tries to create the file itself, and gets
  // the reason.
  UniqueFd take(int folder, const std::string& name);

 private:
  struct Spare {
    std::string name;
    UniqueFd fd;
  };

  void run();
  UniqueFd open_folder() const;
  // None if it cannot be created: the next attempt is at the next take().
  UniqueFd make(const std::string& name) const;

  const std::filesystem::path root_;
  const std::filesystem::path folder_;

  std::mutex mutex_;  // guards the five below
  std::condition_variable something_to_do_;
  UniqueFd folder_fd_;   // changed by the thread alone, which reads it without the mutex
  bool is_gone_ = true;  // the directory has to be created
  std::vector<Spare> spares_;
  bool wants_more_ = false;
  bool is_ending_ = false;

  std::thread thread_;  // started by the first take(), joined by the destructor
};

}  // namespace agbox
