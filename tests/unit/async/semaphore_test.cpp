// SPDX-License-Identifier: Apache-2.0
#include "async/semaphore.h"

#include <gtest/gtest.h>

#include "support/test_loop.h"

namespace agbox {
namespace {

TEST(Semaphore, LimitsConcurrencyInFifoOrder) {
  TestLoop loop;
  Semaphore gate(loop.executor(), 2);
  std::vector<TestTask<Result<Semaphore::Permit>>> tasks;
  for (int i = 0; i < 4; ++i) tasks.push_back(loop.spawn(gate.acquire()));
  loop.run_until_idle();
  EXPECT_TRUE(tasks[0].is_done());
  EXPECT_TRUE(tasks[1].is_done());
  EXPECT_FALSE(tasks[2].is_done());
  {
    const auto left = std::move(tasks[0].result());
  }
  // A later caller queues after the waiters.
  auto late = loop.spawn(gate.acquire());
  loop.run_until_idle();
  EXPECT_TRUE(tasks[2].is_done());
  EXPECT_FALSE(tasks[3].is_done());
  EXPECT_FALSE(late.is_done());
  {
    const auto left = std::move(tasks[1].result());
  }
  loop.run_until_idle();
  EXPECT_TRUE(tasks[3].is_done());
  {
    const auto left = std::move(tasks[2].result());
  }
  loop.run_until_idle();
  EXPECT_TRUE(late.is_done());
}

TEST(Semaphore, ACancelledWaiterTakesNoPermit) {
  TestLoop loop;
  Semaphore gate(loop.executor(), 1);
  auto first = loop.spawn(gate.acquire());
  auto impatient = loop.spawn(gate.acquire());
  auto patient = loop.spawn(gate.acquire());
  loop.run_until_idle();
  impatient.cancel();
  loop.run_until_idle();
  ASSERT_TRUE(impatient.is_done());
  EXPECT_EQ(impatient.result().error().reason(), reason::kCancelled);
  {
    const auto left = std::move(first.result());
  }
  loop.run_until_idle();
  EXPECT_TRUE(patient.is_done());
}

TEST(Semaphore, APermitIsNotLostIfItsWaiterIsCancelledAtTheSameTime) {
  TestLoop loop;
  Semaphore gate(loop.executor(), 1);
  auto first = loop.spawn(gate.acquire());
  auto second = loop.spawn(gate.acquire());
  loop.run_until_idle();
  second.cancel();
  {
    const auto left = std::move(first.result());
  }
  loop.run_until_idle();
  ASSERT_TRUE(second.is_done());
  if (second.result()) {
    const auto left = std::move(second.result());
  }
  auto third = loop.spawn(gate.acquire());
  loop.run_until_idle();
  EXPECT_TRUE(third.is_done());
}

}  // namespace
}  // namespace agbox
