// SPDX-License-Identifier: Apache-2.0
#include "control/start_gate.h"

#include <gtest/gtest.h>

#include "support/test_loop.h"

namespace agbox {
namespace {

TEST(StartGate, LetsAFewThroughAndTheOthersInTheOrderOfAsking) {
  TestLoop loop;
  StartGate gate(loop.io(), 2);
  std::vector<TestTask<Result<StartGate::Pass>>> tasks;
  for (int i = 0; i < 4; ++i) tasks.push_back(loop.spawn(gate.enter()));
  loop.run_until_idle();
  EXPECT_TRUE(tasks[0].is_done());
  EXPECT_TRUE(tasks[1].is_done());
  EXPECT_FALSE(tasks[2].is_done());
  {
    const auto left = std::move(tasks[0].result());
  }
  // Whoever asks now comes after those who wait.
  auto late = loop.spawn(gate.enter());
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

TEST(StartGate, WhoeverGivesUpWaitingTakesNoPlace) {
  TestLoop loop;
  StartGate gate(loop.io(), 1);
  auto first = loop.spawn(gate.enter());
  auto impatient = loop.spawn(gate.enter());
  auto patient = loop.spawn(gate.enter());
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

TEST(StartGate, APlaceGivenToSomeoneWhoGivesUpInThatMomentIsNotLost) {
  TestLoop loop;
  StartGate gate(loop.io(), 1);
  auto first = loop.spawn(gate.enter());
  auto second = loop.spawn(gate.enter());
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
  auto third = loop.spawn(gate.enter());
  loop.run_until_idle();
  EXPECT_TRUE(third.is_done());
}

}  // namespace
}  // namespace agbox
