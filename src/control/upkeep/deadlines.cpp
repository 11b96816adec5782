// SPDX-License-Identifier: Apache-2.0
#include "control/upkeep/deadlines.h"

namespace agbox {

Deadlines::Deadlines(ControlLoop& loop, const Clock& clock,
                     std::function<void(const std::string& sandbox_id)> due)
    : loop_(loop), clock_(clock), due_(std::move(due)), timer_(loop.io().get_executor(), [this] {
        armed_for_.reset();
        call_due();
      }) {}

void Deadlines::set(const std::string& sandbox_id, BootTime when) {
  AGBOX_ON_CONTROL_THREAD(loop_);
  const auto [known, is_new] = by_sandbox_.try_emplace(sandbox_id, when);
  if (!is_new) {
    by_time_.erase({known->second, sandbox_id});
    known->second = when;
  }
  by_time_.emplace(when, sandbox_id);
  arm_timer();
}

void Deadlines::clear(const std::string& sandbox_id) {
  AGBOX_ON_CONTROL_THREAD(loop_);
  const auto known = by_sandbox_.find(sandbox_id);
  if (known == by_sandbox_.end()) return;
  by_time_.erase({known->second, sandbox_id});
  by_sandbox_.erase(known);
}

void Deadlines::call_due() {
  const BootTime now = clock_.boot_now();
  while (!by_time_.empty() && by_time_.begin()->first <= now) {
    const std::string sandbox_id = by_time_.begin()->second;
    clear(sandbox_id);
    due_(sandbox_id);
  }
  arm_timer();
}

// The timer is not rearmed when a deadline is postponed: it then fires early and waits again. So
// execs that come and go cost no system call.
void Deadlines::arm_timer() {
  if (by_time_.empty()) return;
  const BootTime first = by_time_.begin()->first;
  if (armed_for_ && *armed_for_ <= first) return;
  armed_for_ = first;
  timer_.expires_after(first - clock_.boot_now());
}

}  // namespace agbox
