// SPDX-License-Identifier: Apache-2.0
// The wait before the next attempt, with exponential backoff. One waiter at a time, on the
// executor's single thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>

#include "async/backoff.h"

namespace agbox {

class RetryTimer {
 public:
  RetryTimer(const boost::asio::any_io_executor& executor, std::chrono::milliseconds first,
             std::chrono::milliseconds longest)
      : backoff_(first, longest), timer_(executor) {}

  // False if the waiter was cancelled. The pause begins with this call, not when the result is
  // awaited, so that skip() in between has an effect.
  boost::asio::awaitable<bool> wait();
  bool is_waiting() const { return is_waiting_; }
  // Ends the current pause, if any.
  void skip() { timer_.expires_at(boost::asio::steady_timer::time_point::min()); }
  // After a success.
  void reset() { backoff_.reset(); }

 private:
  boost::asio::awaitable<bool> until_over();

  Backoff backoff_;
  boost::asio::steady_timer timer_;
  bool is_waiting_ = false;
};

}  // namespace agbox
