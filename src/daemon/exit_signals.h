// SPDX-License-Identifier: Apache-2.0
// The signals that end the daemon: SIGTERM and SIGINT. The first one is reported to the loop and
// arms the exit limit in the signal handler itself, so that a control thread that hangs does not
// keep the process. The second one ends the process at once, whatever it hangs in.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <functional>

namespace agbox {

class ExitSignals {
 public:
  // Takes the signals from here on. One per process, because handlers are.
  ExitSignals(const boost::asio::any_io_executor& executor, std::chrono::seconds limit);
  ExitSignals(const ExitSignals&) = delete;
  // Without it they end the process at once. A limit that is armed stays: what is left of the end
  // may hang too.
  ~ExitSignals();

  // Calls `asked` on the executor, once, when the first signal has come or if it has come already.
  void wait(std::function<void()> asked);

 private:
  boost::asio::posix::stream_descriptor wake_;
};

}  // namespace agbox
