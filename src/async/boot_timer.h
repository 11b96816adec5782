// SPDX-License-Identifier: Apache-2.0
// A timer on CLOCK_BOOTTIME, which includes suspend: what became due while the machine was
// suspended fires as soon as it resumes.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <functional>

namespace agbox {

class BootTimer {
 public:
  // Everything runs on the executor's single thread.
  BootTimer(const boost::asio::any_io_executor& executor, std::function<void()> on_expiry);
  BootTimer(const BootTimer&) = delete;

  // Replaces the previous expiry. `on_expiry` is called once, never from within this call.
  void expires_after(std::chrono::nanoseconds time);
  void cancel();

 private:
  void wait();

  std::function<void()> on_expiry_;
  boost::asio::posix::stream_descriptor timer_;
  bool is_waiting_ = false;
};

}  // namespace agbox
