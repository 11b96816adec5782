// SPDX-License-Identifier: Apache-2.0
// A thread that runs what is posted to it, in order: it stands for the daemon's control thread
// where a program uses the store alone. Its destructor runs what was posted before.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace agbox {

class CallbackThread {
 public:
  CallbackThread() : thread_([this] { run(); }) {}
  CallbackThread(const CallbackThread&) = delete;
  CallbackThread& operator=(const CallbackThread&) = delete;
  ~CallbackThread() {
    post({});
    thread_.join();
  }

  void post(std::function<void()> function) {
    {
      const std::scoped_lock lock(mutex_);
      functions_.push_back(std::move(function));
    }
    arrived_.notify_one();
  }

 private:
  void run() {
    while (true) {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [&] { return !functions_.empty(); });
      const auto function = std::move(functions_.front());
      functions_.pop_front();
      lock.unlock();
      if (!function) return;
      function();
    }
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::function<void()>> functions_;
  std::thread thread_;
};

}  // namespace agbox
