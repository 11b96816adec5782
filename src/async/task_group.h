// SPDX-License-Identifier: Apache-2.0
// Owns the coroutines of one object, so that none outlives it. Declare it last among the members:
// tasks may use everything above it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <list>
#include <memory>
#include <string>

#include "async/event.h"
#include "base/thread_checker.h"

namespace agbox {

namespace asio = boost::asio;

class TaskGroup {
 public:
  explicit TaskGroup(asio::any_io_executor executor);
  ~TaskGroup();  // call join() first
  TaskGroup(const TaskGroup&) = delete;

  // Runs the task on the executor. An exception that escapes it is a bug and aborts the process.
  // The returned signal cancels this task only; it has no effect after the task has ended.
  std::shared_ptr<asio::cancellation_signal> spawn(std::string name, asio::awaitable<void> task);

  // Cancels every task: what it awaits returns as cancelled.
  void cancel();

  // Returns when no task is left.
  asio::awaitable<void> join();

 private:
  ThreadChecker thread_;
  asio::any_io_executor executor_;
  Event idle_;
  std::list<std::shared_ptr<asio::cancellation_signal>> running_;
};

}  // namespace agbox
