// SPDX-License-Identifier: Apache-2.0
// Owns the coroutines of one object: none outlives it, and none fails unseen.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <string>
#include <utility>

#include "base/check.h"

namespace agbox::guestlink {

class TaskGroup {
 public:
  explicit TaskGroup(boost::asio::any_io_executor executor)
      : executor_(executor), idle_(executor, boost::asio::steady_timer::time_point::max()) {}
  ~TaskGroup() { AGBOX_CHECK(running_ == 0, "join() before the end of a task group"); }
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  void spawn(std::string name, boost::asio::awaitable<void> task) {
    ++running_;
    auto ended = [this, name = std::move(name)](std::exception_ptr failure) {
      if (failure) die(name + ": an exception left a task");
      if (--running_ == 0) idle_.cancel();
    };
    boost::asio::co_spawn(executor_, std::move(task), std::move(ended));
  }

  boost::asio::awaitable<void> join() {
    while (running_ > 0) {
      co_await idle_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    }
  }

 private:
  boost::asio::any_io_executor executor_;
  boost::asio::steady_timer idle_;
  int running_ = 0;
};

}  // namespace agbox::guestlink
