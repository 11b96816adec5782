// SPDX-License-Identifier: Apache-2.0
// Exponential backoff: the delay doubles up to a limit. async/retry_pause.h does the waiting.
#pragma once

#include <algorithm>
#include <chrono>

namespace agbox {

class Backoff {
 public:
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds longest)
      : first_(first), longest_(longest), next_(first) {}

  std::chrono::milliseconds next() {
    const std::chrono::milliseconds wait = next_;
    next_ = std::min(next_ * 2, longest_);
    return wait;
  }
  // After a success.
  void reset() { next_ = first_; }

 private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds longest_;
  std::chrono::milliseconds next_;
};

}  // namespace agbox
