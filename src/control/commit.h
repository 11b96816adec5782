// SPDX-License-Identifier: Apache-2.0
// Awaits an append to the store: returns once the change is on disk. It cannot be cancelled,
// because the change may already be written.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <utility>

#include "async/await_callback.h"
#include "store/store.h"

namespace agbox {

namespace asio = boost::asio;

inline asio::awaitable<Result<Committed>> commit(Store& store, Change change) {
  return await_callback<Result<Committed>>([&store, change = std::move(change)](auto done) mutable {
    store.append(std::move(change), std::move(done));
  });
}

}  // namespace agbox
