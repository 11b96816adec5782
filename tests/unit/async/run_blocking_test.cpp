// SPDX-License-Identifier: Apache-2.0
#include "async/run_blocking.h"

#include <gtest/gtest.h>

#include <boost/asio/thread_pool.hpp>
#include <future>
#include <memory>
#include <thread>

#include "support/test_loop.h"

namespace agbox {
namespace {

TEST(RunBlocking, RunsElsewhereAndResumesOnTheCallersThread) {
  TestLoop loop;
  boost::asio::thread_pool pool(1);
  const auto here = std::this_thread::get_id();
  std::thread::id there;
  std::thread::id back;
  auto story = [&]() -> boost::asio::awaitable<int> {
    const int number = co_await run_blocking(pool.get_executor(), [&] {
      there = std::this_thread::get_id();
      return 42;
    });
    back = std::this_thread::get_id();
    co_return number;
  };
  EXPECT_EQ(loop.run(story()), 42);
  EXPECT_NE(there, here);
  EXPECT_EQ(back, here);
}

TEST(RunBlocking, ReturnsMoveOnlyValues) {
  TestLoop loop;
  boost::asio::thread_pool pool(1);
  auto given = std::make_unique<int>(7);
  const auto returned = loop.run(run_blocking(
      pool.get_executor(), [given = std::move(given)]() mutable { return std::move(given); }));
  EXPECT_EQ(*returned, 7);
}

TEST(RunBlocking, LeavesTheCallersThreadFree) {
  TestLoop loop;
  boost::asio::thread_pool pool(1);
  std::promise<void> release;
  auto blocked =
      loop.spawn(run_blocking(pool.get_executor(), [released = release.get_future().share()] {
        released.wait();
        return true;
      }));
  bool was_run = false;
  boost::asio::post(loop.io(), [&] { was_run = true; });
  loop.run_until([&] { return was_run; });
  EXPECT_FALSE(blocked.is_done());
  release.set_value();
  loop.run_until([&] { return blocked.is_done(); });
  EXPECT_TRUE(blocked.result());
}

// It may use the caller's objects, so the caller must wait for it.
TEST(RunBlocking, EndsBeforeACancelledCallerDoes) {
  TestLoop loop;
  boost::asio::thread_pool pool(1);
  std::promise<void> release;
  auto blocked =
      loop.spawn(run_blocking(pool.get_executor(), [released = release.get_future().share()] {
        released.wait();
        return true;
      }));
  loop.run_until_idle();
  blocked.cancel();
  loop.run_until_idle();
  EXPECT_FALSE(blocked.is_done());
  release.set_value();
  loop.run_until([&] { return blocked.is_done(); });
  EXPECT_TRUE(blocked.result());
}

}  // namespace
}  // namespace agbox
