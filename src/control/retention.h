// SPDX-License-Identifier: Apache-2.0
// When the history of a deleted sandbox goes. Time is counted on the boot clock from the moment at
// which this daemon learned of the deletion, so somebody who sets the date deletes nothing early.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "base/clock.h"
#include "control/control_loop.h"

namespace agbox {

class Retention {
 public:
  // `ttl` 0: history is kept for ever. `purge` is called once for each sandbox whose time is over.
  Retention(ControlLoop& loop, const Clock& clock, std::chrono::nanoseconds ttl,
            std::function<void(const std::string& sandbox_id)> purge);

  void deleted(const std::string& sandbox_id, WallTime when);
  // What is due by now; the timer calls it, and tests that move a clock by hand.
  void purge_due();

 private:
  void arm_timer();

  const Clock& clock_;
  std::chrono::nanoseconds ttl_;
  std::function<void(const std::string& sandbox_id)> purge_;
  std::multimap<BootTime, std::string> due_;
  asio::steady_timer timer_;
};

}  // namespace agbox
