// SPDX-License-Identifier: Apache-2.0
// Whether the current coroutine was cancelled. Asio cancels an operation in progress; between two
// operations the signal is only recorded. So check before waiting, or the wait may last forever.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>

namespace agbox {

// Afterwards cancellation is reported as a value: co_await no longer throws.
inline boost::asio::awaitable<bool> is_cancelled() {
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  const auto state = co_await boost::asio::this_coro::cancellation_state;
  co_return state.cancelled() != boost::asio::cancellation_type::none;
}

}  // namespace agbox
