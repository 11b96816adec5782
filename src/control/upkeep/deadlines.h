// SPDX-License-Identifier: Apache-2.0
// Deadlines of idle sandboxes: at most one per sandbox, on the boot clock, with one timer for all
// of them. No sandbox is polled.
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
  // `due` is called once for each sandbox whose deadline has passed, and may set another.
  Deadlines(ControlLoop& loop, const Clock& clock,
            std::function<void(const std::string& sandbox_id)> due);

  // Replaces the sandbox's current deadline.
  void set(const std::string& sandbox_id, BootTime when);
  void clear(const std::string& sandbox_id);
  // The earliest of all sandboxes.
  std::optional<BootTime> next() const {
    return by_time_.empty() ? std::nullopt : std::optional(by_time_.begin()->first);
  }
  // Handles everything that is due now; called by the timer, and by tests with a manual clock.
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
