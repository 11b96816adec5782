// SPDX-License-Identifier: Apache-2.0
#include "control/retention.h"

#include <algorithm>
#include <utility>

namespace agbox {

Retention::Retention(ControlLoop& loop, const Clock& clock, std::chrono::nanoseconds ttl,
                     std::function<void(const std::string& sandbox_id)> purge)
    : clock_(clock), ttl_(ttl), purge_(std::move(purge)), timer_(loop.io()) {}

void Retention::deleted(const std::string& sandbox_id, WallTime when) {
  if (ttl_ == std::chrono::nanoseconds(0)) return;
  // Of a deletion "in the future" the whole time is left, of one long ago none.
  const auto age = std::clamp<std::chrono::nanoseconds>(clock_.wall_now() - when,
                                                        std::chrono::nanoseconds(0), ttl_);
  due_.emplace(clock_.boot_now() + ttl_ - age, sandbox_id);
  arm_timer();
}

void Retention::purge_due() {
  const BootTime now = clock_.boot_now();
  while (!due_.empty() && due_.begin()->first <= now) {
    const std::string sandbox_id = std::move(due_.begin()->second);
    due_.erase(due_.begin());
    purge_(sandbox_id);
  }
  arm_timer();
}

void Retention::arm_timer() {
  if (due_.empty()) return;
  // The timer's clock stands still while the machine sleeps; it then comes late, looks, and waits
  // on.
  timer_.expires_after(
      std::max(due_.begin()->first - clock_.boot_now(), std::chrono::nanoseconds(0)));
  timer_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) purge_due();
  });
}

}  // namespace agbox
