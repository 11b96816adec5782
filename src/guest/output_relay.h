// SPDX-License-Identifier: Apache-2.0
// Carries what the entrypoint and the caller's command write into the container's own stdout or
// stderr, which the engine logs, and remembers the last of it. A log that does not take more holds
// the writer up, as without us; it never holds the guest up.
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

  // Begins with a new source.
  void start(UniqueFd from);
  void collect(Watches& watches);
  // Takes everything that has been written so far and waits a moment for the log to take it.
  void finish(std::chrono::milliseconds patience);
  // From here on nobody asks for the tail.
  void forget_tail() { remember_ = false; }

 private:
  bool read_some();  // whether there may be more
  void write_some();
  void read_what_is_there();

  int to_;
  Tail& tail_;
  UniqueFd from_;
  std::string pending_;
  bool remember_ = true;
};

}  // namespace agbox::guest
