// SPDX-License-Identifier: Apache-2.0
// The folder that holds lock and socket. Having a RuntimeFolder means: it is a real folder, ours,
// and closed to everybody else; everything in it is reached through its descriptor.
#pragma once

#include <filesystem>

#include "base/log.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace agbox {

class RuntimeFolder {
 public:
  // Creates it with its parents where it is missing; refuses a symbolic link, another user's folder
  // and anything that is not a folder. Wider permissions are taken away, with a line in the log.
  static Result<RuntimeFolder> open(const std::filesystem::path& path, const Logger& log);

  const std::filesystem::path& path() const { return path_; }
  int fd() const { return fd_.get(); }

 private:
  RuntimeFolder(std::filesystem::path path, UniqueFd fd)
      : path_(std::move(path)), fd_(std::move(fd)) {}

  std::filesystem::path path_;
  UniqueFd fd_;
};

}  // namespace agbox
