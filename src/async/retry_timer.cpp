// SPDX-License-Identifier: Apache-2.0
#include "async/retry_timer.h"

#include "async/await.h"
#include "async/cancellation.h"

namespace agbox {

boost::asio::awaitable<bool> RetryTimer::wait() {
  is_waiting_ = true;
  timer_.expires_after(backoff_.next());
  return until_over();
}

boost::asio::awaitable<bool> RetryTimer::until_over() {
  bool is_over = !co_await is_cancelled();
  if (is_over) {
    co_await timer_.async_wait(kAwait);
    is_over = !co_await is_cancelled();
  }
  is_waiting_ = false;
  co_return is_over;
}

}  // namespace agbox
