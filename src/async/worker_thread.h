// SPDX-License-Identifier: Apache-2.0
// A thread for work that blocks, so that nobody else waits for it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <thread>

namespace agbox {

class WorkerThread {
 public:
  WorkerThread();
  // What has not begun is dropped: whoever waits for it ends first.
  ~WorkerThread();
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  boost::asio::any_io_executor executor() { return io_.get_executor(); }

 private:
  boost::asio::io_context io_;
  // Asio opens what it waits with at the first need; later there may be no descriptor left for it.
  boost::asio::steady_timer opens_at_once_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keep_running_;
  std::thread thread_;  // what is done on it blocks
};

}  // namespace agbox
