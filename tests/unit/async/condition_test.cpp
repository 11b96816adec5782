// SPDX-License-Identifier: Apache-2.0
#include "async/condition.h"

#include <gtest/gtest.h>

#include "support/test_loop.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kNever = steady_clock::time_point::max();

TEST(Condition, EachWaiterHasItsOwnPredicate) {
  TestLoop loop;
  Condition changed(loop.executor());
  int number = 0;
  auto one = loop.spawn(changed.wait([&] { return number >= 1; }, kNever));
  auto two = loop.spawn(changed.wait([&] { return number >= 2; }, kNever));
  loop.run_until_idle();
  EXPECT_FALSE(one.is_done());
  number = 1;
  changed.notify();
  loop.run_until_idle();
  EXPECT_TRUE(one.result());
  EXPECT_FALSE(two.is_done());
  number = 2;
  changed.notify();
  loop.run_until_idle();
  EXPECT_TRUE(two.result());
}

TEST(Condition, DoesNotWaitIfAlreadyTrue) {
  TestLoop loop;
  Condition changed(loop.executor());
  EXPECT_TRUE(loop.run(changed.wait([] { return true; }, steady_clock::time_point::min())));
}

TEST(Condition, EndsAtTheDeadline) {
  TestLoop loop;
  Condition changed(loop.executor());
  const auto deadline = steady_clock::now() + 2ms;
  EXPECT_FALSE(loop.run(changed.wait([] { return false; }, deadline)));
  EXPECT_GE(steady_clock::now(), deadline);
}

TEST(Condition, EndsWhenItsWaiterIsCancelled) {
  TestLoop loop;
  Condition changed(loop.executor());
  bool is_so = false;
  auto cancelled = loop.spawn(changed.wait([&] { return is_so; }, kNever));
  auto other = loop.spawn(changed.wait([&] { return is_so; }, kNever));
  loop.run_until_idle();
  cancelled.cancel();
  loop.run_until_idle();
  ASSERT_TRUE(cancelled.is_done());
  EXPECT_FALSE(cancelled.result());
  is_so = true;
  changed.notify();
  loop.run_until_idle();
  EXPECT_TRUE(other.result());
}

}  // namespace
}  // namespace agbox
