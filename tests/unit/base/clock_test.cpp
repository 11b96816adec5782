// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <gtest/gtest.h>

#include "support/manual_clock.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

TEST(TimeSince, UsesTheBootClockRegardlessOfTheDate) {
  ManualClock clock;
  const Moment then = clock.now();
  clock.advance(90min);
  EXPECT_EQ(time_since(then, clock.now()), 90min);
  clock.jump_wall(24h * 365);
  EXPECT_EQ(time_since(then, clock.now()), 90min);
  clock.jump_wall(-24h * 800);
  EXPECT_EQ(time_since(then, clock.now()), 90min);
}

TEST(TimeSince, UsesTheDateAcrossBoots) {
  ManualClock clock;
  clock.advance(1h);
  const Moment then = clock.now();
  clock.reboot();
  clock.advance(2h);
  EXPECT_EQ(time_since(then, clock.now()), 2h);
  clock.jump_wall(3h);  // the machine was off
  EXPECT_EQ(time_since(then, clock.now()), 5h);
}

TEST(TimeSince, IsAtLeastTheUptimeAcrossBoots) {
  ManualClock clock;
  const Moment then = clock.now();
  clock.reboot();
  clock.advance(2h);
  clock.jump_wall(-24h * 30);
  EXPECT_EQ(time_since(then, clock.now()), 2h);
}

TEST(TimeSince, WithoutABootIdUsesTheDateAndIsNeverNegative) {
  ManualClock clock;
  Moment then = clock.now();
  then.boot_id.clear();
  clock.advance(2h);
  EXPECT_EQ(time_since(then, clock.now()), 2h);
  clock.jump_wall(-24h);
  EXPECT_EQ(time_since(then, clock.now()), 0h);
}

TEST(TimeSince, ClampsInvalidStoredValues) {
  ManualClock clock;
  Moment then{.wall = WallTime::min(), .boot = BootTime::max(), .boot_id = "another"};
  EXPECT_EQ(time_since(then, clock.now()), clock.wall_now().time_since_epoch());
  then.wall = WallTime::max();
  EXPECT_EQ(time_since(then, clock.now()), 0h);
  then.boot_id = clock.boot_id();
  EXPECT_EQ(time_since(then, clock.now()), 0h);
}

TEST(SystemClock, HasABootId) {
  EXPECT_FALSE(SystemClock().boot_id().empty());
  EXPECT_EQ(SystemClock().boot_id(), SystemClock().boot_id());
}

}  // namespace
}  // namespace agbox
