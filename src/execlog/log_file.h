// SPDX-License-Identifier: Apache-2.0
// One log of an exec, opened for reading as if an attacker had prepared its directory: below a held
// descriptor of the root, through no link of any kind, a regular file with a single name. The
// descriptor stays on that file even if another one replaces it later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "agbox/store/v1/record.pb.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace agbox {

class LogFile {
 public:
  // `path` is below `root`, which is configured and may itself be reached through links.
  static Result<LogFile> open(const std::filesystem::path& root, const std::filesystem::path& path);

  // The current size in bytes. An error if the file was unlinked, or has a second link.
  Result<std::uint64_t> size() const;

  // Fills the buffer from `offset`; an error if the file is too short now.
  Result<> read(std::uint64_t offset, std::span<char> buffer) const;

  int fd() const { return fd_.get(); }

 private:
  LogFile(UniqueFd fd, std::filesystem::path path) : fd_(std::move(fd)), path_(std::move(path)) {}

  UniqueFd fd_;
  std::filesystem::path path_;
};

// The end of an exec's output: of stderr if it printed anything there, otherwise of stdout. UTF-8,
// without blanks at its end; empty if there is nothing, or it cannot be read.
std::string exec_output_tail(const store::v1::Exec& record);

}  // namespace agbox
