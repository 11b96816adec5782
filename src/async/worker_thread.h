// SPDX-License-Identifier: Apache-2.0
// A thread for blocking work.
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
  // Drops work that has not started: its waiters must have ended before.
  ~WorkerThread();
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  boost::asio::any_io_executor executor() { return io_.get_executor(); }

 private:
  boost::asio::io_context io_;
  // Asio opens its descriptors on first use; later none might be left.
  boost::asio::steady_timer opens_at_once_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keep_running_;
  std::thread thread_;  // runs blocking work
};

}  // namespace agbox
