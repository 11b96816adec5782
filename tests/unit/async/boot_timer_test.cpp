// SPDX-License-Identifier: Apache-2.0
#include "async/boot_timer.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <memory>

namespace agbox {
namespace {

using namespace std::chrono_literals;

class BootTimerTest : public testing::Test {
 protected:
  boost::asio::io_context io_;
  int expired_ = 0;
  std::unique_ptr<BootTimer> timer_ =
      std::make_unique<BootTimer>(io_.get_executor(), [this] { ++expired_; });
};

TEST_F(BootTimerTest, FiresOnceAndNeverFromTheCallItself) {
  timer_->expires_after(0ns);
  EXPECT_EQ(expired_, 0);
  io_.run();  // returns, because nothing is pending
  EXPECT_EQ(expired_, 1);
}

TEST_F(BootTimerTest, CanBeRearmed) {
  timer_->expires_after(1h);
  timer_->expires_after(1ms);
  io_.run();
  EXPECT_EQ(expired_, 1);
  timer_->expires_after(1ms);
  io_.restart();
  io_.run();
  EXPECT_EQ(expired_, 2);
}

TEST_F(BootTimerTest, APostponedExpiryDoesNotFire) {
  timer_->expires_after(1ns);
  timer_->expires_after(1h);
  EXPECT_EQ(io_.run_for(20ms), 0U);
  EXPECT_EQ(expired_, 0);
  timer_->cancel();
  EXPECT_EQ(io_.poll(), 0U);
}

TEST_F(BootTimerTest, ADestroyedTimerDoesNotFire) {
  timer_->expires_after(1ns);
  timer_.reset();
  io_.run();
  EXPECT_EQ(expired_, 0);
}

}  // namespace
}  // namespace agbox
