// SPDX-License-Identifier: Apache-2.0
// Owns the coroutines of one object, so that none outlives it. Declare it last among the members:
// tasks may use everything above it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "async/event.h"
#include "base/thread_checker.h"

namespace agbox {

namespace asio = boost::asio;

// A task of a group. Copies are the same task.
class Task {
 public:
  // What it awaits returns as cancelled. No effect after its end, also if that comes first when
  // this is called outside the executor's loop.
  void cancel() const;

 private:
  friend class TaskGroup;
  struct State;
  explicit Task(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

class TaskGroup {
 public:
  explicit TaskGroup(asio::any_io_executor executor);
  ~TaskGroup();  // call join() first
  TaskGroup(const TaskGroup&) = delete;

  // Runs the task on the executor. An exception that escapes it is a bug and aborts the process.
  Task spawn(std::string name, asio::awaitable<void> task);

  void cancel();  // every task

  // Returns when no task is left.
  asio::awaitable<void> join();

 private:
  ThreadChecker thread_;
  asio::any_io_executor executor_;
  Event idle_;
  std::list<Task> running_;
};

}  // namespace agbox
