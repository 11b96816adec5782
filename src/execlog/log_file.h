// SPDX-License-Identifier: Apache-2.0
// One log of an exec, opened for reading as if an enemy had prepared its folder: below a held
// descriptor of the root, through no link of any kind, a regular file with a single name. The
// descriptor stays on that file whatever is put in its place later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace agbox {

class LogFile {
 public:
  // `path` lies below `root`, which the configuration names and which may be reached through links.
  static Result<LogFile> open(const std::filesystem::path& root, const std::filesystem::path& path);

  // How many bytes it has now. An error where it lost its name, or got a second one.
  Result<std::uint64_t> size() const;

  // Fills the buffer from `offset` on; an error where the file does not reach that far any more.
  Result<> read(std::uint64_t offset, std::span<char> buffer) const;

  int fd() const { return fd_.get(); }

 private:
  LogFile(UniqueFd fd, std::filesystem::path path) : fd_(std::move(fd)), path_(std::move(path)) {}

  UniqueFd fd_;
  std::filesystem::path path_;
};

}  // namespace agbox
