// SPDX-License-Identifier: Apache-2.0
// Empty files for the output of execs, created in advance. Creating a file can cost ext4 most of a
// millisecond, renaming one hardly anything: with spare files an exec waits for a rename only. They
// are in a directory of this daemon that no sandbox sees, next to those of the sandboxes. If it
// disappears it is created again.
//
// Has a thread of its own for the files of execs: on a shared one an exec would wait for whatever
// else blocks.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "async/worker_thread.h"
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
  // Of its thread.
  boost::asio::any_io_executor executor() { return thread_->executor(); }

  // On its thread: moves a spare file to `name` in `directory`, a descriptor; it is open for
  // appending. None if there is no spare, or if that name exists: the caller then tries to create
  // the file itself, and gets the reason.
  UniqueFd take(int directory, const std::string& name);

 private:
  struct Spare {
    std::string name;
    UniqueFd fd;
  };

  // Creates one, then again until there are enough: what else the thread has to do comes first.
  void refill();
  void refill_later();
  void forget_removed();
  UniqueFd open_directory() const;

  const std::filesystem::path root_;
  const std::filesystem::path directory_;
  UniqueFd directory_fd_;  // none: the directory has to be created
  std::vector<Spare> spares_;
  bool is_refilling_ = false;
  std::optional<WorkerThread> thread_;  // alone uses what is above
};

}  // namespace agbox
