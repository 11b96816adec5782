// SPDX-License-Identifier: Apache-2.0
// A call that makes or starts something in the engine, carried to its end. Given up half-way, the
// engine would go on with it: what it makes after a clean-up has looked would stay for ever, what
// it starts after a stop would run on. So a cancelled operation waits for the answer and ends with
// the next step. Only `calls.cancel()`, at the daemon's own end, cuts the call off: the next start
// cleans up.
#pragma once

#include <functional>
#include <utility>

#include "async/await_callback.h"
#include "async/cancellation.h"
#include "async/task_group.h"
#include "engine/docker/api/engine_client.h"

namespace agbox {

template <class T>
asio::awaitable<void> answer(EngineAwaitable<T> call, std::function<void(EngineResult<T>)> done) {
  done(co_await std::move(call));
}

template <class T>
EngineAwaitable<T> unbroken(TaskGroup& calls, EngineAwaitable<T> call) {
  if (co_await is_cancelled()) co_return engine_fail(EngineErrorKind::Cancelled, "cancelled");
  co_return co_await await_callback<EngineResult<T>>([&calls, &call](auto done) {
    calls.spawn("engine call", answer<T>(std::move(call), std::move(done)));
  });
}

}  // namespace agbox
