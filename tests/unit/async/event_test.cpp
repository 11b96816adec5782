// SPDX-License-Identifier: Apache-2.0
#include "async/event.h"

#include <gtest/gtest.h>

#include "support/test_loop.h"

namespace agbox {
namespace {

boost::asio::awaitable<bool> wait_uncancelled(Event& event) {
  co_await event.wait_uncancelled();
  co_return event.is_set();
}

TEST(Event, WakesAllWaitersAndLaterOnesDoNotWait) {
  TestLoop loop;
  Event event(loop.executor());
  auto first = loop.spawn(event.wait());
  auto second = loop.spawn(event.wait());
  loop.run_until_idle();
  EXPECT_FALSE(first.is_done());
  event.set();
  loop.run_until_idle();
  EXPECT_TRUE(first.result());
  EXPECT_TRUE(second.result());
  EXPECT_TRUE(loop.run(event.wait()));
}

TEST(Event, LaterWaitersWaitAfterAReset) {
  TestLoop loop;
  Event event(loop.executor());
  event.set();
  event.reset();
  auto waiting = loop.spawn(event.wait());
  loop.run_until_idle();
  EXPECT_FALSE(waiting.is_done());
  event.set();
  loop.run_until_idle();
  EXPECT_TRUE(waiting.result());
}

TEST(Event, ReportsThatItsWaiterWasCancelled) {
  TestLoop loop;
  Event event(loop.executor());
  auto cancelled = loop.spawn(event.wait());
  auto other = loop.spawn(event.wait());
  loop.run_until_idle();
  cancelled.cancel();
  loop.run_until_idle();
  ASSERT_TRUE(cancelled.is_done());
  EXPECT_FALSE(cancelled.result());
  EXPECT_FALSE(other.is_done());
  event.set();
  loop.run_until_idle();
  EXPECT_TRUE(other.result());
}

TEST(Event, SetAndCancelledAtOnceCountsAsSet) {
  TestLoop loop;
  Event event(loop.executor());
  auto waiting = loop.spawn(event.wait());
  loop.run_until_idle();
  event.set();
  waiting.cancel();
  loop.run_until_idle();
  EXPECT_TRUE(waiting.result());
}

TEST(Event, AnUncancelledWaitIgnoresCancellation) {
  TestLoop loop;
  Event event(loop.executor());
  auto waiting = loop.spawn(wait_uncancelled(event));
  loop.run_until_idle();
  waiting.cancel();
  loop.run_until_idle();
  EXPECT_FALSE(waiting.is_done());
  event.set();
  loop.run_until_idle();
  EXPECT_TRUE(waiting.result());
}

}  // namespace
}  // namespace agbox
