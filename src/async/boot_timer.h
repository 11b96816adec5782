// SPDX-License-Identifier: Apache-2.0
// A timer on the clock that goes on while the machine sleeps (CLOCK_BOOTTIME): what became due
// meanwhile comes as soon as it wakes up.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <functional>

namespace agbox {

class BootTimer {
 public:
  // Everything runs on the executor's one thread.
  BootTimer(const boost::asio::any_io_executor& executor, std::function<void()> on_expiry);
  BootTimer(const BootTimer&) = delete;

  // Replaces the earlier expiry. `on_expiry` is called once, never from here.
  void expires_after(std::chrono::nanoseconds time);
  void cancel();

 private:
  void wait();

  std::function<void()> on_expiry_;
  boost::asio::posix::stream_descriptor timer_;
  bool is_waiting_ = false;
};

}  // namespace agbox
