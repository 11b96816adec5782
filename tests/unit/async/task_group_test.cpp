// SPDX-License-Identifier: Apache-2.0
#include "async/task_group.h"

#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <stdexcept>

#include "async/cancellation.h"
#include "async/event.h"
#include "support/test_loop.h"

namespace agbox {
namespace {

asio::awaitable<void> note_whether_cancelled(bool& was_cancelled) {
  was_cancelled = co_await is_cancelled();
}

asio::awaitable<void> wait_forever() {
  asio::steady_timer timer(co_await asio::this_coro::executor,
                           asio::steady_timer::time_point::max());
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

asio::awaitable<void> throw_something() {
  throw std::runtime_error("a bug");
  co_return;
}

TEST(TaskGroup, ATaskNeverStartsInsideSpawn) {
  TestLoop loop;
  TaskGroup tasks(loop.executor());
  bool was_cancelled = true;
  tasks.spawn("note", note_whether_cancelled(was_cancelled));
  EXPECT_TRUE(was_cancelled);
  loop.run(tasks.join());
  EXPECT_FALSE(was_cancelled);
}

TEST(TaskGroup, ATaskCancelledBeforeItsFirstStepSeesIt) {
  TestLoop loop;
  TaskGroup tasks(loop.executor());
  bool was_cancelled = false;
  asio::post(loop.io(),
             [&] { tasks.spawn("note", note_whether_cancelled(was_cancelled)).cancel(); });
  loop.run_until_idle();
  loop.run(tasks.join());
  EXPECT_TRUE(was_cancelled);
}

// What cancels it outside the loop takes effect inside, after what was posted before.
TEST(TaskGroup, ATaskThatEndsBeforeItsCancelIsNotTouched) {
  TestLoop loop;
  TaskGroup tasks(loop.executor());
  Event event(loop.executor());
  const auto wait = [](Event& its_event) -> asio::awaitable<void> { co_await its_event.wait(); };
  const Task task = tasks.spawn("wait", wait(event));
  loop.run_until_idle();
  event.set();
  task.cancel();
  loop.run_until_idle();
  task.cancel();
  loop.run(tasks.join());
}

TEST(TaskGroup, CancelEndsAllTasksAndJoinWaits) {
  TestLoop loop;
  TaskGroup tasks(loop.executor());
  for (int i = 0; i < 3; ++i) tasks.spawn("wait", wait_forever());
  loop.run_until_idle();
  asio::post(loop.io(), [&] { tasks.cancel(); });
  loop.run(tasks.join());
}

TEST(TaskGroupDeathTest, AnEscapedExceptionAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        TestLoop loop;
        TaskGroup tasks(loop.executor());
        tasks.spawn("faulty", throw_something());
        loop.run_until_idle();
      },
      "faulty: an exception left the task: a bug");
}

TEST(TaskGroupDeathTest, DestructionWithARunningTaskAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        TestLoop loop;
        TaskGroup tasks(loop.executor());
        tasks.spawn("wait", wait_forever());
      },
      "join.. before destruction");
}

}  // namespace
}  // namespace agbox
