// SPDX-License-Identifier: Apache-2.0
// Adapts a callback interface to an awaitable. The wait cannot be cancelled: the callee does not
// know its waiter.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <utility>

namespace agbox {

// `ask(done)` must call done(T) exactly once, on the waiting coroutine's thread.
template <class T, class Ask>
boost::asio::awaitable<T> await_callback(Ask ask) {
  auto start = [ask = std::move(ask)](auto handler) mutable {
    // std::function requires a copyable target, but the handler is move-only.
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    ask([shared](T value) { std::move (*shared)(std::move(value)); });
  };
  return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(T)>(
      std::move(start), boost::asio::use_awaitable);
}

}  // namespace agbox
