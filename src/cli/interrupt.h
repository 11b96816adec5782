// SPDX-License-Identifier: Apache-2.0
// While an Interrupt exists, SIGINT (Ctrl-C), SIGTERM and, if wanted, SIGHUP (the window was
// closed) request a stop instead of terminating the program, so that a command can still report
// what keeps running. A second signal, of either kind, terminates the program, but SIGHUP does not:
// a window that is closed sends it more than once. At most one Interrupt may exist at a time.
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
  enum class Hangup {
    Terminates,  // as without an Interrupt
    Handled,     // as the other signals
  };

  explicit Interrupt(Hangup hangup = Hangup::Terminates);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  // The shell convention, 128 plus the signal number. Valid after a stop.
  int exit_code() const { return 128 + signal_; }

 private:
  void watch();

  UniqueFd reader_;
  UniqueFd writer_;
  std::vector<std::pair<int, struct sigaction>> former_;
  std::stop_source source_;
  std::atomic<int> signal_ = 0;
  // A signal handler may do very little: it writes to the pipe, and this thread reads from it.
  std::thread watcher_;
};

}  // namespace agbox::cli
