// SPDX-License-Identifier: Apache-2.0
// While it lives, Ctrl-C (SIGINT) and SIGTERM ask for a stop instead of ending the program, so that
// a command can still say what goes on without it. A second one, of either kind, ends the program
// at once. At most one at a time.
#pragma once

#include <atomic>
#include <csignal>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"

namespace agbox::cli {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  // What a shell expects of a program that this signal ended. Valid after a stop.
  int exit_code() const { return 128 + signal_; }

 private:
  void watch();

  UniqueFd reader_;
  UniqueFd writer_;
  std::vector<std::pair<int, struct sigaction>> former_;
  std::stop_source source_;
  std::atomic<int> signal_ = 0;
  // A signal handler may do next to nothing: it writes into the pipe, and this thread reads there.
  std::thread watcher_;
};

}  // namespace agbox::cli
