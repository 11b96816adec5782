// SPDX-License-Identifier: Apache-2.0
// A condition variable for coroutines of one thread; each waiter has its own predicate and
// deadline.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <utility>
#include <vector>

#include "async/await.h"
#include "async/cancellation.h"

namespace agbox {

class Condition {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  explicit Condition(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}
  Condition(const Condition&) = delete;

  // Wakes all waiters; each evaluates its predicate again.
  void notify() {
    for (boost::asio::steady_timer* timer : waiting_) timer->cancel();
  }

  // True once `done()` is; false at the deadline or on cancellation. What `done` refers to must
  // outlive the wait.
  template <class Predicate>
  boost::asio::awaitable<bool> wait(Predicate done, Deadline deadline) {
    boost::asio::steady_timer timer(executor_, deadline);
    while (!done()) {
      if (std::chrono::steady_clock::now() >= deadline || co_await is_cancelled()) co_return false;
      waiting_.push_back(&timer);
      co_await timer.async_wait(kAwait);
      std::erase(waiting_, &timer);
    }
    co_return true;
  }

 private:
  boost::asio::any_io_executor executor_;
  std::vector<boost::asio::steady_timer*> waiting_;
};

}  // namespace agbox
