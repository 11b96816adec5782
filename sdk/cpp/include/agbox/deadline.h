// SPDX-License-Identifier: Apache-2.0
// A stop token that is requested when another one is, or when a time has passed.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace agbox::sdk {

class Deadline {
 public:
  // Absent: no limit.
  Deadline(std::optional<std::chrono::nanoseconds> limit, const std::stop_token& other)
      : on_other_(other, [this] { source_.request_stop(); }) {
    if (limit)
      timer_ = std::jthread([this, at = *limit](const std::stop_token& stop) { run(at, stop); });
  }

  std::stop_token token() const { return source_.get_token(); }
  bool has_passed() const { return has_passed_; }

 private:
  void run(std::chrono::nanoseconds limit, const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any never;
    never.wait_for(lock, stop, limit, [] { return false; });
    if (stop.stop_requested()) return;
    has_passed_ = true;
    source_.request_stop();
  }

  std::stop_source source_;
  std::atomic<bool> has_passed_ = false;
  std::stop_callback<std::function<void()>> on_other_;
  // The caller is blocked in a call to the daemon.
  std::jthread timer_;
};

}  // namespace agbox::sdk
