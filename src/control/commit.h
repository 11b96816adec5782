// SPDX-License-Identifier: Apache-2.0
// A store's append as something to await: it comes back when the change is on disk. It cannot be
// cancelled, because nobody can take back what may be written already.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <utility>

#include "store/store.h"

namespace agbox {

namespace asio = boost::asio;

inline asio::awaitable<Result<Committed>> commit(Store& store, Change change) {
  auto start = [&store, change = std::move(change)](auto handler) mutable {
    // std::function wants something to copy, and a coroutine's handler can only be moved.
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    store.append(std::move(change),
                 [shared](Result<Committed> result) { std::move (*shared)(std::move(result)); });
  };
  return asio::async_initiate<const asio::use_awaitable_t<>, void(Result<Committed>)>(
      std::move(start), asio::use_awaitable);
}

}  // namespace agbox
