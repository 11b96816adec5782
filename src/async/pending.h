// SPDX-License-Identifier: Apache-2.0
// A value that arrives later, for at most one waiter on the same thread. What produces it runs
// whether or not anyone waits. The wait cannot be cancelled.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "async/await_callback.h"

namespace agbox {

template <class T>
class Pending {
 public:
  Pending() = default;
  // It is here already.
  explicit Pending(T value) { state_->value = std::move(value); }

  // Once. The waiter resumes within this call.
  void set(T value) const {
    if (const auto waiter = std::exchange(state_->waiter, nullptr)) {
      waiter(std::move(value));
    } else {
      state_->value = std::move(value);
    }
  }

  boost::asio::awaitable<T> wait() const {
    const auto state = state_;
    if (state->value) co_return std::move(*state->value);
    co_return co_await await_callback<T>([state](auto done) { state->waiter = std::move(done); });
  }

 private:
  struct State {
    std::optional<T> value;
    std::function<void(T)> waiter;
  };
  // Shared by the producer and the waiter.
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace agbox
