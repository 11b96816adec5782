// SPDX-License-Identifier: Apache-2.0
// Whether the coroutine that asks was cancelled. Asio ends the operation that is under way when the
// signal comes; between two operations a signal is only remembered. So whoever is about to wait
// asks first, or would wait for ever.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>

namespace agbox {

// From then on the coroutine gets its cancellation as a value; it does not throw when it awaits.
inline boost::asio::awaitable<bool> is_cancelled() {
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  const auto state = co_await boost::asio::this_coro::cancellation_state;
  co_return state.cancelled() != boost::asio::cancellation_type::none;
}

}  // namespace agbox
