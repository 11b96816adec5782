// SPDX-License-Identifier: Apache-2.0
// Whether a container that ended is started again, and when. Judged on its ends: an engine calls a
// container running while it waits to restart it, so what "runs" proves nothing.
//
// Ends follow each other in a series. A run of 30 s ends the series; an end more than five minutes
// after the first one of its series is the last, unless it is one of the first eight: while the
// engine is away or the machine sleeps time passes in which nothing was tried. Within a series each
// wait is twice the one before.
// Pure: the caller passes the time.
#pragma once

#include <chrono>
#include <optional>

#include "base/clock.h"

namespace agbox {

class CrashWindow {
 public:
  static constexpr std::chrono::seconds kLongEnough{30};
  static constexpr std::chrono::minutes kLongestSeries{5};
  // One in which every run lasts almost 30 s has nine ends within five minutes.
  static constexpr int kEndsForgiven = 8;
  static constexpr std::chrono::milliseconds kFirstWait{100};
  static constexpr std::chrono::milliseconds kLongestWait{60'000};

  // It runs, by our doing or as it was found.
  void started(BootTime now) { up_since_ = now; }

  // It ended, or could not be started. Returns the wait before the next start; nullopt if there is
  // to be none.
  std::optional<std::chrono::milliseconds> ended(BootTime now);

  // A stop or a resume resets it.
  void reset() { *this = {}; }

  bool operator==(const CrashWindow&) const = default;

 private:
  std::optional<BootTime> up_since_;
  std::optional<BootTime> series_since_;
  int ends_ = 0;
  std::chrono::milliseconds next_wait_ = kFirstWait;
};

}  // namespace agbox
