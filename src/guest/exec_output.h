// SPDX-License-Identifier: Apache-2.0
// The two log files of an exec. Above the limit, below the free-space reserve, or after a write
// error, all further output of both streams is dropped: a file is always a prefix of what was
// written.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/unique_fd.h"

namespace agbox::guest {

struct LogFiles {
  UniqueFd out;  // both opened for appending
  UniqueFd err;
};

struct OutputLimits {
  std::uint64_t bytes = 0;               // of both files together; 0: unlimited
  std::uint64_t free_space_reserve = 0;  // of the files' filesystem
};

class ExecOutput {
 public:
  ExecOutput(LogFiles files, OutputLimits limits) : files_(std::move(files)), limits_(limits) {}

  void append_out(std::string_view bytes) { append(files_.out.get(), bytes); }
  void append_err(std::string_view bytes) { append(files_.err.get(), bytes); }
  bool is_truncated() const { return truncated_; }

 private:
  void append(int file, std::string_view bytes);
  bool leaves_reserve(int file, std::size_t size);

  LogFiles files_;
  OutputLimits limits_;
  std::uint64_t written_ = 0;
  std::uint64_t until_next_check_ = 0;  // bytes to write before the free space is checked again
  bool truncated_ = false;
};

}  // namespace agbox::guest
