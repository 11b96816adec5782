// SPDX-License-Identifier: Apache-2.0
// What somebody brings to a callback, as something to await. It cannot be cancelled: whoever was
// asked knows nothing of who waits.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <utility>

namespace agbox {

// `ask(done)` leads to one call of done(T), on the thread of whoever waits.
template <class T, class Ask>
boost::asio::awaitable<T> await_callback(Ask ask) {
  auto start = [ask = std::move(ask)](auto handler) mutable {
    // std::function wants something to copy, and a coroutine's handler can only be moved.
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    ask([shared](T value) { std::move (*shared)(std::move(value)); });
  };
  return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(T)>(
      std::move(start), boost::asio::use_awaitable);
}

}  // namespace agbox
