// SPDX-License-Identifier: Apache-2.0
// The pause before the next try of something that failed: longer after each failure, until a
// success. For one who waits at a time, on the executor's one thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>

#include "async/backoff.h"

namespace agbox {

class RetryPause {
 public:
  RetryPause(const boost::asio::any_io_executor& executor, std::chrono::milliseconds first,
             std::chrono::milliseconds longest)
      : backoff_(first, longest), timer_(executor) {}

  // False where whoever waits was cancelled. The pause begins with the call, not with the first
  // step of what it gives back: hurry() may come in between.
  boost::asio::awaitable<bool> wait();
  bool is_waiting() const { return is_waiting_; }
  // Ends the pause that has begun; nothing where there is none.
  void hurry() { timer_.expires_at(boost::asio::steady_timer::time_point::min()); }
  // After a success.
  void reset() { backoff_.reset(); }

 private:
  boost::asio::awaitable<bool> until_over();

  Backoff backoff_;
  boost::asio::steady_timer timer_;
  bool is_waiting_ = false;
};

}  // namespace agbox
