// SPDX-License-Identifier: Apache-2.0
// When something is to be done about a sandbox that is left alone: at most one moment per sandbox,
// on the boot clock, and one timer for all of them. Nobody looks at a sandbox before its time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "async/boot_timer.h"
#include "base/clock.h"
#include "control/control_loop.h"

namespace agbox {

class Deadlines {
 public:
  // `due` is called once for each sandbox whose time has come, and may set another.
  Deadlines(ControlLoop& loop, const Clock& clock,
            std::function<void(const std::string& sandbox_id)> due);

  // Instead of the one that it has.
  void set(const std::string& sandbox_id, BootTime when);
  void clear(const std::string& sandbox_id);
  // Of all of them.
  std::optional<BootTime> next() const {
    return by_time_.empty() ? std::nullopt : std::optional(by_time_.begin()->first);
  }
  // What is due by now; the timer calls it, and tests that move a clock by hand.
  void call_due();

 private:
  void arm_timer();

  ControlLoop& loop_;
  const Clock& clock_;
  std::function<void(const std::string& sandbox_id)> due_;
  std::map<std::string, BootTime, std::less<>> by_sandbox_;
  std::set<std::pair<BootTime, std::string>> by_time_;
  std::optional<BootTime> armed_for_;
  BootTimer timer_;
};

}  // namespace agbox
