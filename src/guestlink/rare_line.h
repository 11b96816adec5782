// SPDX-License-Identifier: Apache-2.0
// Decides when to write a log line that whoever runs in a sandbox can cause as often as it likes:
// the first at once, then one per interval that also says how many were left out.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace agbox::guestlink {

class RareLine {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RareLine(Clock::duration interval) : interval_(interval) {}

  // How many were left out since the last one; nothing where this one is to be left out too.
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

}  // namespace agbox::guestlink
