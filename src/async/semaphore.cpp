// SPDX-License-Identifier: Apache-2.0
#include "async/semaphore.h"

namespace agbox {

namespace asio = boost::asio;

asio::awaitable<Result<Semaphore::Permit>> Semaphore::acquire() {
  if (free_ > 0) {
    --free_;
    co_return Permit(this);
  }
  const auto turn = std::make_shared<Event>(executor_);
  queue_.push_back(turn);
  if (co_await turn->wait()) co_return Permit(this);
  std::erase(queue_, turn);
  co_return fail(reason::kCancelled, "cancelled while waiting for a permit");
}

void Semaphore::release() {
  if (queue_.empty()) {
    ++free_;
    return;
  }
  const std::shared_ptr<Event> next = queue_.front();
  queue_.pop_front();
  next->set();  // hands the permit over directly, so that no later caller can take it
}

}  // namespace agbox
