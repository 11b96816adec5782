// SPDX-License-Identifier: Apache-2.0
// A manual-reset event for coroutines of the executor's single thread. It must outlive its waiters.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

namespace agbox {

class Event {
 public:
  explicit Event(const boost::asio::any_io_executor& executor)
      : waiting_(executor, boost::asio::steady_timer::time_point::max()) {}

  bool is_set() const { return is_set_; }
  void set() {
    is_set_ = true;
    waiting_.cancel();
  }
  // A waiter that has not run since set() keeps waiting.
  void reset() { is_set_ = false; }

  // True once set; false if the caller was cancelled first.
  boost::asio::awaitable<bool> wait();
  // For waits that must complete: ignores cancellation.
  boost::asio::awaitable<void> wait_uncancelled();

 private:
  bool is_set_ = false;
  boost::asio::steady_timer waiting_;  // never expires; cancelling it wakes all waiters
};

}  // namespace agbox
