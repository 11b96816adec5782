// SPDX-License-Identifier: Apache-2.0
#include "control/control_loop.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/check.h"

namespace agbox {
namespace {

TEST(ControlLoop, RunsWhatOtherThreadsPostInOrderOnTheControlThread) {
  ControlLoop loop;
  std::vector<int> order;
  std::jthread other([&] {
    EXPECT_FALSE(loop.is_control_thread());
    for (int i = 0; i < 100; ++i) {
      loop.post([&, i] {
        EXPECT_TRUE(loop.is_control_thread());
        order.push_back(i);
      });
    }
    loop.post([&] { loop.stop(); });
  });
  loop.run();
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(ControlLoopDeathTest, AnotherThreadIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        ControlLoop loop;
        std::jthread([&] { loop.run(); }).join();
      },
      "called on another thread");
}

}  // namespace
}  // namespace agbox
