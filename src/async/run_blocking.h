// SPDX-License-Identifier: Apache-2.0
// Runs blocking work on another thread without blocking the caller's.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <type_traits>
#include <utility>

namespace agbox {

// Resumes on the caller's executor with the result of `work()`. It cannot be cancelled, because a
// system call cannot be revoked; so `work` must own its resources, or they must outlive it.
template <class Work>
boost::asio::awaitable<std::invoke_result_t<Work>> run_blocking(boost::asio::any_io_executor pool,
                                                                Work work) {
  using Value = std::invoke_result_t<Work>;
  auto uncancelled = boost::asio::bind_cancellation_slot(boost::asio::cancellation_slot(),
                                                         boost::asio::use_awaitable);
  if constexpr (std::is_void_v<Value>) {
    auto run = [](Work blocking) -> boost::asio::awaitable<void> {
      blocking();
      co_return;
    };
    co_await boost::asio::co_spawn(pool, run(std::move(work)), std::move(uncancelled));
  } else {
    // co_spawn() requires a value that can be default-constructed.
    auto run = [](Work blocking) -> boost::asio::awaitable<std::optional<Value>> {
      co_return blocking();
    };
    co_return *co_await boost::asio::co_spawn(pool, run(std::move(work)), std::move(uncancelled));
  }
}

}  // namespace agbox
