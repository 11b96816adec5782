// SPDX-License-Identifier: Apache-2.0
// Copies the output of the entrypoint and the caller's command to the container's own stdout or
// stderr, which the engine logs, and keeps the tail. If the log is blocked, the writer blocks, as
// without us, but never the guest.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "guest/watch.h"

namespace agbox::guest {

// The last bytes of a stream.
class Tail {
 public:
  static constexpr std::size_t kSize = 4096;
  void add(std::string_view bytes);
  const std::string& text() const { return text_; }
  void clear() { text_ = {}; }

 private:
  std::string text_;
};

class OutputRelay {
 public:
  // `tail` must outlive the relay.
  OutputRelay(int to, Tail& tail) : to_(to), tail_(tail) {}

  // Sets a new source.
  void start(UniqueFd from);
  void collect(Watches& watches);
  // Reads everything written so far and waits up to `timeout` for the log to accept it.
  void finish(std::chrono::milliseconds timeout);
  // The tail is no longer needed.
  void forget_tail() { remember_ = false; }

 private:
  bool read_some();  // true if there may be more
  void write_some();
  void drain();

  int to_;
  Tail& tail_;
  UniqueFd from_;
  std::string pending_;
  bool remember_ = true;
};

}  // namespace agbox::guest
