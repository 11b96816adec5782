// SPDX-License-Identifier: Apache-2.0
#include "async/task_group.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>

#include "base/check.h"

namespace agbox {
namespace {

asio::awaitable<void> run(asio::awaitable<void> task) {
  // Failures are values: a cancelled await returns an error instead of throwing.
  co_await asio::this_coro::throw_if_cancelled(false);
  // Never start inside spawn(): its caller finishes first.
  co_await asio::post(asio::use_awaitable);
  co_await std::move(task);
}

std::string what(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "not a std::exception";
  }
}

}  // namespace

struct Task::State {
  explicit State(asio::any_io_executor its_executor) : executor(std::move(its_executor)) {}

  asio::any_io_executor executor;
  asio::cancellation_signal signal;
  bool has_ended = false;
};

// co_spawn() passes a signal on through the executor. Outside its loop that is later, when the task
// may be gone, which it does not check; so the signal is only given inside the loop.
void Task::cancel() const {
  asio::dispatch(state_->executor, [state = state_] {
    if (!state->has_ended) state->signal.emit(asio::cancellation_type::terminal);
  });
}

TaskGroup::TaskGroup(asio::any_io_executor executor)
    : executor_(std::move(executor)), idle_(executor_) {
  idle_.set();
}

TaskGroup::~TaskGroup() {
  AGBOX_CHECK(running_.empty(), "join() before destruction");
}

Task TaskGroup::spawn(std::string name, asio::awaitable<void> task) {
  AGBOX_ON_ITS_THREAD(thread_);
  const auto state = std::make_shared<Task::State>(executor_);
  const auto entry = running_.insert(running_.end(), Task(state));
  idle_.reset();
  auto ended = [this, entry, state, name = std::move(name)](const std::exception_ptr& failure) {
    state->has_ended = true;
    if (failure) die(name + ": an exception left the task: " + what(failure));
    running_.erase(entry);
    if (running_.empty()) idle_.set();
  };
  asio::co_spawn(executor_, run(std::move(task)),
                 asio::bind_cancellation_slot(state->signal.slot(), std::move(ended)));
  return Task(state);
}

void TaskGroup::cancel() {
  AGBOX_ON_ITS_THREAD(thread_);
  const auto tasks = running_;  // one may end and leave the list while it is being cancelled
  for (const Task& task : tasks) task.cancel();
}

asio::awaitable<void> TaskGroup::join() {
  AGBOX_ON_ITS_THREAD(thread_);
  co_await idle_.wait_uncancelled();
}

}  // namespace agbox
