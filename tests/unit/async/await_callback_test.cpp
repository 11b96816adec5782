// SPDX-License-Identifier: Apache-2.0
#include "async/await_callback.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "support/test_loop.h"

namespace agbox {
namespace {

TEST(AwaitCallback, ReturnsTheValueOfALaterCallback) {
  TestLoop loop;
  std::function<void(int)> done;
  auto waiting = loop.spawn(await_callback<int>([&](auto callback) { done = callback; }));
  loop.run_until_idle();
  ASSERT_FALSE(waiting.is_done());
  done(7);
  loop.run_until([&] { return waiting.is_done(); });
  EXPECT_EQ(waiting.result(), 7);
}

TEST(AwaitCallback, ReturnsAMoveOnlyValueOfAnImmediateCallback) {
  TestLoop loop;
  const auto brought = loop.run(await_callback<std::unique_ptr<int>>(
      [given = std::make_unique<int>(7)](auto callback) mutable { callback(std::move(given)); }));
  EXPECT_EQ(*brought, 7);
}

}  // namespace
}  // namespace agbox
