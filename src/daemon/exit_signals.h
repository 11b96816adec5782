// SPDX-License-Identifier: Apache-2.0
// SIGTERM and SIGINT. The first one is reported to the loop and starts the exit timeout in the
// signal handler itself, so that a hung control thread cannot keep the process alive. The second
// one kills the process.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <functional>

namespace agbox {

namespace asio = boost::asio;

class ExitSignals {
 public:
  // Installs the handlers. One per process.
  ExitSignals(const asio::any_io_executor& executor, std::chrono::seconds limit);
  ExitSignals(const ExitSignals&) = delete;
  // Restores default handlers, which kill the process. A started timeout stays, because the rest of
  // the exit may hang too.
  ~ExitSignals();

  // Calls `asked` on the executor once, after the first signal or if it has already arrived.
  void wait(std::function<void()> asked);

 private:
  asio::posix::stream_descriptor wake_;
};

}  // namespace agbox
