// SPDX-License-Identifier: Apache-2.0
#include "async/event.h"

#include <boost/asio/bind_cancellation_slot.hpp>

#include "async/await.h"
#include "async/cancellation.h"

namespace agbox {

namespace asio = boost::asio;

asio::awaitable<bool> Event::wait() {
  while (!is_set_) {
    if (co_await is_cancelled()) co_return false;
    co_await waiting_.async_wait(kAwait);
  }
  co_return true;
}

asio::awaitable<void> Event::wait_uncancelled() {
  while (!is_set_) {
    co_await waiting_.async_wait(asio::bind_cancellation_slot(asio::cancellation_slot(), kAwait));
  }
}

}  // namespace agbox
