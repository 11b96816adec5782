// SPDX-License-Identifier: Apache-2.0
// The input of one exec: copies what the daemon's pipes bring, one pipe after the other, into the
// stdin of the command or into its terminal. It reads a pipe only when the command has taken what
// came before, so a slow command fills the pipe and nothing else. Belongs to a runner.
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "agbox/guest/v1/link.pb.h"
#include "base/unique_fd.h"

namespace agbox::guest {

class InputRelay {
 public:
  // `to` is the writing end of the command's stdin or the master of its terminal; non-blocking.
  void open(UniqueFd to, bool is_terminal);
  bool is_open() const { return static_cast<bool>(to_); }
  // No more input: the command gets end of file.
  void close();

  // Bytes of the pipe follow those that earlier pipes have now.
  v1::InputAttached attach(UniqueFd pipe);
  // The input ends after what the pipes have. A terminal gets its end-of-file character, and can
  // get more input later.
  void end();

  // What to wait for; a negative descriptor means nothing.
  pollfd wait_for_space() const;
  pollfd wait_for_bytes() const;
  void on_space(short happened);
  void on_bytes();

 private:
  struct Source {
    UniqueFd pipe;
    // Bytes that still count, once a later pipe was attached.
    std::optional<std::uint64_t> left{};
  };

  void take_some();
  void write_some();
  void end_if_due();

  UniqueFd to_;
  bool is_terminal_ = false;
  bool end_is_due_ = false;
  std::deque<Source> sources_;
  std::uint64_t taken_ = 0;  // from all pipes
  std::string unwritten_;
};

}  // namespace agbox::guest
