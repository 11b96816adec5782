// SPDX-License-Identifier: Apache-2.0
#include "async/retry_timer.h"

#include <gtest/gtest.h>

#include "support/test_loop.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

constexpr auto kForever = std::chrono::milliseconds(1h);

TEST(RetryTimer, IsOverAfterItsTime) {
  TestLoop loop;
  RetryTimer timer(loop.executor(), 1ms, 1ms);
  EXPECT_TRUE(loop.run(timer.wait()));
  EXPECT_FALSE(timer.is_waiting());
}

TEST(RetryTimer, IsLongerAfterEachFailureUntilASuccess) {
  TestLoop loop;
  RetryTimer timer(loop.executor(), 1ms, kForever);
  for (int i = 0; i < 20; ++i) {
    auto begun = timer.wait();
    timer.skip();
    loop.run(std::move(begun));
  }
  auto waiting = loop.spawn(timer.wait());
  loop.run_until_idle();
  EXPECT_TRUE(timer.is_waiting());
  timer.skip();
  loop.run_until([&] { return waiting.is_done(); });
  timer.reset();
  EXPECT_TRUE(loop.run(timer.wait()));  // otherwise it would take a quarter of an hour
}

TEST(RetryTimer, EndsWhenSkipped) {
  TestLoop loop;
  RetryTimer timer(loop.executor(), kForever, kForever);
  auto waiting = loop.spawn(timer.wait());
  loop.run_until_idle();
  ASSERT_TRUE(timer.is_waiting());
  timer.skip();
  loop.run_until([&] { return waiting.is_done(); });
  EXPECT_TRUE(waiting.result());
  EXPECT_FALSE(timer.is_waiting());
}

TEST(RetryTimer, CanBeSkippedBeforeItIsAwaited) {
  TestLoop loop;
  RetryTimer timer(loop.executor(), kForever, kForever);
  auto begun = timer.wait();
  EXPECT_TRUE(timer.is_waiting());
  timer.skip();
  EXPECT_TRUE(loop.run(std::move(begun)));
}

TEST(RetryTimer, SkipHasNoEffectBeforeThePauseBegins) {
  TestLoop loop;
  RetryTimer timer(loop.executor(), kForever, kForever);
  timer.skip();
  auto waiting = loop.spawn(timer.wait());
  loop.run_until_idle();
  EXPECT_TRUE(timer.is_waiting());
  waiting.cancel();
  loop.run_until([&] { return waiting.is_done(); });
}

TEST(RetryTimer, ReportsThatItsWaiterWasCancelled) {
  TestLoop loop;
  RetryTimer timer(loop.executor(), kForever, kForever);
  auto waiting = loop.spawn(timer.wait());
  loop.run_until_idle();
  waiting.cancel();
  loop.run_until([&] { return waiting.is_done(); });
  EXPECT_FALSE(waiting.result());
  EXPECT_FALSE(timer.is_waiting());
}

}  // namespace
}  // namespace agbox
