// SPDX-License-Identifier: Apache-2.0
// The directory of lock and socket. A RuntimeDirectory is a real directory, owned by us and
// inaccessible to others; its content is accessed through its descriptor.
#pragma once

#include <filesystem>

#include "base/log.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace agbox {

class RuntimeDirectory {
 public:
  // Creates it with its parents if missing; refuses a symbolic link, another user's directory and
  // anything that is not a directory. Restricts wider permissions and logs it.
  static Result<RuntimeDirectory> open(const std::filesystem::path& path, const Logger& log);

  const std::filesystem::path& path() const { return path_; }
  int fd() const { return fd_.get(); }

 private:
  RuntimeDirectory(std::filesystem::path path, UniqueFd fd)
      : path_(std::move(path)), fd_(std::move(fd)) {}

  std::filesystem::path path_;
  UniqueFd fd_;
};

}  // namespace agbox
