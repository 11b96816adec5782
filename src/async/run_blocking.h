// SPDX-License-Identifier: Apache-2.0
// Work that blocks, done on a thread that may wait, while the caller's thread goes on with other
// things.
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

// Comes back on the caller's executor with what `work()` returns. It cannot be cancelled: nobody
// can take back a system call. So `work` owns what it uses, or what it uses waits for its end.
template <class Work>
boost::asio::awaitable<std::invoke_result_t<Work>> run_blocking(boost::asio::any_io_executor pool,
                                                                Work work) {
  auto there = [](Work blocking) -> boost::asio::awaitable<std::invoke_result_t<Work>> {
    co_return blocking();
  };
  co_return co_await boost::asio::co_spawn(
      pool, there(std::move(work)),
      boost::asio::bind_cancellation_slot(boost::asio::cancellation_slot(),
                                          boost::asio::use_awaitable));
}

}  // namespace agbox
