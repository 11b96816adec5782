// SPDX-License-Identifier: Apache-2.0
// Limits a log line that an untrusted process can cause at will: the first is logged at once, then
// one per interval, with the number of those left out.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace agbox {

class RareLine {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RareLine(Clock::duration interval) : interval_(interval) {}

  // The number left out since the last one; nullopt if this one is left out too.
  std::optional<std::uint64_t> is_due(Clock::time_point now = Clock::now()) {
    if (next_ && now < *next_) {
      ++left_out_;
      return std::nullopt;
    }
    next_ = now + interval_;
    return std::exchange(left_out_, 0);
  }

 private:
  Clock::duration interval_;
  std::optional<Clock::time_point> next_;
  std::uint64_t left_out_ = 0;
};

}  // namespace agbox
