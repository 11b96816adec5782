// SPDX-License-Identifier: Apache-2.0
// How long a sandbox may stay as it is before the daemon does something about it: a ready one
// without execs is stopped, a stopped or failed one is deleted, a deleted one's history is purged.
// Pure.
#pragma once

#include <chrono>
#include <optional>

#include "model/sandbox/lifecycle.h"

namespace agbox {

// A hundred years: far enough, and a date so far ahead can still be counted in nanoseconds.
inline constexpr std::chrono::hours kLongestTtl{876'000};

// 0: forever.
struct TimesToLive {
  std::chrono::nanoseconds idle{0};     // if the sandbox has none of its own
  std::chrono::nanoseconds cleanup{0};  // stopped or failed
  std::chrono::nanoseconds history{0};  // of a deleted one
};

// Counted from the latest change of its state or end of an exec. nullopt: forever.
std::optional<std::chrono::nanoseconds> time_to_live(
    Lifecycle state, bool has_execs, std::optional<std::chrono::nanoseconds> own_idle_ttl,
    const TimesToLive& ttls);

}  // namespace agbox
