// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/crash_window.h"

#include <algorithm>
#include <utility>

namespace agbox {

std::optional<std::chrono::milliseconds> CrashWindow::ended(BootTime now) {
  const auto up_since = std::exchange(up_since_, std::nullopt);
  if (up_since && now - *up_since >= kLongEnough) reset();
  if (!series_since_) series_since_ = now;
  ++ends_;
  if (ends_ > kEndsForgiven && now - *series_since_ > kLongestSeries) return std::nullopt;
  const auto wait = next_wait_;
  next_wait_ = std::min(next_wait_ * 2, kLongestWait);
  return wait;
}

}  // namespace agbox
