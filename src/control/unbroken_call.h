// SPDX-License-Identifier: Apache-2.0
// A call that makes or starts something in the engine, carried to its end. Given up half-way, the
// engine would go on with it: what it makes after a clean-up has looked would stay for ever, what
// it starts after a stop would run on. So a cancelled operation waits for the answer and ends with
// the next step. Only `calls.cancel()`, at the daemon's own end, cuts the call off: the next start
// cleans up.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <utility>

#include "async/cancellation.h"
#include "async/task_group.h"
#include "docker/engine_client.h"

namespace agbox {

template <class T, class Handler>
asio::awaitable<void> answer(EngineAwaitable<T> call, std::shared_ptr<Handler> handler) {
  EngineResult<T> result = co_await std::move(call);
  std::move (*handler)(std::move(result));
}

template <class T>
EngineAwaitable<T> unbroken(TaskGroup& calls, EngineAwaitable<T> call) {
  if (co_await is_cancelled()) co_return engine_fail(EngineErrorKind::Cancelled, "cancelled");
  auto start = [&calls, &call](auto handler) {
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    calls.spawn("engine call", answer(std::move(call), std::move(shared)));
  };
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(EngineResult<T>)>(
      std::move(start), asio::use_awaitable);
}

}  // namespace agbox
