// SPDX-License-Identifier: Apache-2.0
// Drives an io_context by hand in a test: runs one coroutine to its end, or several side by side,
// without a sleep. What takes longer than the guard time is a failure of the test.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace agbox {

// A coroutine that runs beside the test.
template <class T>
class TestTask {
 public:
  bool is_done() const { return state_->has_ended; }
  T& result() { return state_->result.value(); }
  // Posted, because Asio requires signals from outside of the loop to be.
  void cancel() {
    boost::asio::post(*state_->io, [state = state_] {
      if (!state->has_ended) state->signal.emit(boost::asio::cancellation_type::terminal);
    });
  }

 private:
  friend class TestLoop;
  struct State {
    std::optional<T> result;
    bool has_ended = false;
    boost::asio::io_context* io = nullptr;
    boost::asio::cancellation_signal signal;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

class TestLoop {
 public:
  boost::asio::io_context& io() { return io_; }
  auto executor() { return io_.get_executor(); }

  template <class T>
  TestTask<T> spawn(boost::asio::awaitable<T> task) {
    TestTask<T> handle;
    handle.state_->io = &io_;
    // The handler keeps the signal until the coroutine no longer listens to it.
    const auto ended = [state = handle.state_](const std::exception_ptr& failure) {
      if (failure) std::rethrow_exception(failure);
      state->has_ended = true;
    };
    boost::asio::co_spawn(io_, keep_result<T>(std::move(task), handle.state_),
                          boost::asio::bind_cancellation_slot(handle.state_->signal.slot(), ended));
    return handle;
  }

  // A coroutine without a value is done when its result is true.
  TestTask<bool> spawn(boost::asio::awaitable<void> task) {
    return spawn(with_value(std::move(task)));
  }

  template <class T>
  T run(boost::asio::awaitable<T> task) {
    TestTask<T> handle = spawn(std::move(task));
    run_until([&] { return handle.is_done(); });
    return std::move(handle.result());
  }

  void run(boost::asio::awaitable<void> task) { run(with_value(std::move(task))); }

  void run_until(const std::function<bool()>& holds) {
    const auto give_up = std::chrono::steady_clock::now() + kGuard;
    io_.restart();
    while (!holds()) {
      if (io_.run_one_until(give_up) == 0) {
        throw std::runtime_error("the loop has nothing to do, or took too long");
      }
    }
  }

  // Runs at most this many ready handlers.
  void run_steps(int steps) {
    io_.restart();
    for (int i = 0; i < steps && io_.poll_one() > 0; ++i) {
    }
  }

  // Runs everything that does not wait for time or for another thread.
  void run_until_idle() {
    io_.restart();
    while (io_.poll() > 0) {
    }
  }

 private:
  static constexpr std::chrono::seconds kGuard{60};

  template <class T>
  static boost::asio::awaitable<void> keep_result(
      boost::asio::awaitable<T> task, std::shared_ptr<typename TestTask<T>::State> state) {
    state->result.emplace(co_await std::move(task));
  }

  static boost::asio::awaitable<bool> with_value(boost::asio::awaitable<void> task) {
    co_await std::move(task);
    co_return true;
  }

  boost::asio::io_context io_;
};

}  // namespace agbox
