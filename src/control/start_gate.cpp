// SPDX-License-Identifier: Apache-2.0
#include "control/start_gate.h"

#include <algorithm>

#include "async/await.h"
#include "async/cancellation.h"

namespace agbox {
namespace {

std::unexpected<Error> given_up() {
  return fail(reason::kCancelled, "gave up waiting for its turn to start");
}

}  // namespace

asio::awaitable<Result<StartGate::Pass>> StartGate::enter() {
  if (free_ > 0) {
    --free_;
    co_return Pass(this);
  }
  if (co_await is_cancelled()) co_return given_up();
  const auto self = std::make_shared<Waiting>(io_);
  queue_.push_back(self);
  co_await self->timer.async_wait(kAwait);
  if (self->has_place) co_return Pass(this);
  std::erase(queue_, self);
  co_return given_up();
}

void StartGate::leave() {
  if (queue_.empty()) {
    ++free_;
    return;
  }
  const std::shared_ptr<Waiting> next = queue_.front();
  queue_.pop_front();
  next->has_place = true;  // the place goes straight to it, so nobody can slip in between
  next->timer.cancel();
}

}  // namespace agbox
