// SPDX-License-Identifier: Apache-2.0
// Runs blocking work on another thread without blocking the caller's.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <type_traits>
#include <utility>

namespace agbox {

// Resumes on the caller's executor with the result of `work()`. It cannot be cancelled, because a
// system call cannot be revoked; so `work` must own its resources, or they must outlive it.
template <class Work>
boost::asio::awaitable<std::invoke_result_t<Work>> run_blocking(boost::asio::any_io_executor pool,
                                                                Work work) {
  auto run = [](Work blocking) -> boost::asio::awaitable<std::invoke_result_t<Work>> {
    co_return blocking();
  };
  co_return co_await boost::asio::co_spawn(
      pool, run(std::move(work)),
      boost::asio::bind_cancellation_slot(boost::asio::cancellation_slot(),
                                          boost::asio::use_awaitable));
}

}  // namespace agbox
