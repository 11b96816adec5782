// SPDX-License-Identifier: Apache-2.0
// The control thread: makes all decisions of the daemon, one after another, so nothing that belongs
// to it needs a lock. Other threads reach it only through post().
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/thread_checker.h"

namespace agbox {

namespace asio = boost::asio;

class ControlLoop {
 public:
  // The thread that creates the loop is the control thread.
  ControlLoop() : io_(1), keep_running_(asio::make_work_guard(io_)) {}

  asio::io_context& io() { return io_; }

  // From any thread: runs `work` on the control thread, after everything posted before it.
  template <class Work>
  void post(Work&& work) {
    asio::post(io_, std::forward<Work>(work));
  }

  // On the control thread: runs posted work until stop().
  void run();
  void stop() { io_.stop(); }

  bool is_control_thread() const { return thread_.is_current(); }

 private:
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> keep_running_;
  ThreadChecker thread_;
};

}  // namespace agbox

// The first line of every public method that belongs to the control thread.
#define AGBOX_ON_CONTROL_THREAD(loop) \
  AGBOX_CHECK((loop).is_control_thread(), "called on another thread than the control thread")
