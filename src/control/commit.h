// SPDX-License-Identifier: Apache-2.0
// A store's append as something to await: it comes back when the change is on disk. It cannot be
// cancelled, because nobody can take back what may be written already.
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
