// SPDX-License-Identifier: Apache-2.0
// Writes a stream into a pipe whose reader may be slow, hostile or gone. For a thread that may
// block; another one may abort it at any time. SIGPIPE must be ignored.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace agbox {

namespace reason {

// The reader closed its end: it knows why.
inline constexpr Reason kReaderGone{ErrorCode::FailedPrecondition, "READER_GONE"};

}  // namespace reason

// Aborts what blocks on another thread. Thread-safe.
class AbortSignal {
 public:
  // Throws std::system_error if there is no descriptor left.
  AbortSignal();

  void fire();
  bool is_fired() const { return is_fired_.load(std::memory_order_relaxed); }
  // Readable once it was fired.
  int fd() const { return event_.get(); }

 private:
  UniqueFd event_;
  std::atomic<bool> is_fired_ = false;  // without a system call, for a check per file
};

class StreamWriter {
 public:
  // `stall_limit`: how long the reader may take nothing.
  StreamWriter(UniqueFd pipe, const AbortSignal& abort, std::chrono::milliseconds stall_limit);

  // Space to write into, at least one byte; commit() adds what was written.
  Result<std::span<char>> room();
  void commit(std::size_t bytes) { used_ += bytes; }

  Result<> write(std::string_view bytes);
  Result<> flush();

 private:
  Result<> wait_for_reader();

  UniqueFd pipe_;
  const AbortSignal& abort_;
  std::chrono::milliseconds stall_limit_;
  std::vector<char> buffer_;
  std::size_t used_ = 0;
};

}  // namespace agbox
