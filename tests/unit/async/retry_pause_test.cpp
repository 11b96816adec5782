// SPDX-License-Identifier: Apache-2.0
#include "async/retry_pause.h"

#include <gtest/gtest.h>

#include "support/test_loop.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

constexpr auto kForEver = std::chrono::milliseconds(1h);

TEST(RetryPause, IsOverAfterItsTime) {
  TestLoop loop;
  RetryPause pause(loop.executor(), 1ms, 1ms);
  EXPECT_TRUE(loop.run(pause.wait()));
  EXPECT_FALSE(pause.is_waiting());
}

TEST(RetryPause, IsLongerAfterEachFailureUntilASuccess) {
  TestLoop loop;
  RetryPause pause(loop.executor(), 1ms, kForEver);
  for (int i = 0; i < 20; ++i) {
    auto begun = pause.wait();
    pause.skip();
    loop.run(std::move(begun));
  }
  auto waiting = loop.spawn(pause.wait());
  loop.run_until_idle();
  EXPECT_TRUE(pause.is_waiting());
  pause.skip();
  loop.run_until([&] { return waiting.is_done(); });
  pause.reset();
  EXPECT_TRUE(loop.run(pause.wait()));  // otherwise it would take a quarter of an hour
}

TEST(RetryPause, EndsWhenSkipped) {
  TestLoop loop;
  RetryPause pause(loop.executor(), kForEver, kForEver);
  auto waiting = loop.spawn(pause.wait());
  loop.run_until_idle();
  ASSERT_TRUE(pause.is_waiting());
  pause.skip();
  loop.run_until([&] { return waiting.is_done(); });
  EXPECT_TRUE(waiting.result());
  EXPECT_FALSE(pause.is_waiting());
}

TEST(RetryPause, CanBeSkippedBeforeItIsAwaited) {
  TestLoop loop;
  RetryPause pause(loop.executor(), kForEver, kForEver);
  auto begun = pause.wait();
  EXPECT_TRUE(pause.is_waiting());
  pause.skip();
  EXPECT_TRUE(loop.run(std::move(begun)));
}

TEST(RetryPause, SkipHasNoEffectBeforeThePauseBegins) {
  TestLoop loop;
  RetryPause pause(loop.executor(), kForEver, kForEver);
  pause.skip();
  auto waiting = loop.spawn(pause.wait());
  loop.run_until_idle();
  EXPECT_TRUE(pause.is_waiting());
  waiting.cancel();
  loop.run_until([&] { return waiting.is_done(); });
}

TEST(RetryPause, ReportsThatItsWaiterWasCancelled) {
  TestLoop loop;
  RetryPause pause(loop.executor(), kForEver, kForEver);
  auto waiting = loop.spawn(pause.wait());
  loop.run_until_idle();
  waiting.cancel();
  loop.run_until([&] { return waiting.is_done(); });
  EXPECT_FALSE(waiting.result());
  EXPECT_FALSE(pause.is_waiting());
}

}  // namespace
}  // namespace agbox
