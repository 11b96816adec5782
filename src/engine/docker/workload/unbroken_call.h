// SPDX-License-Identifier: Apache-2.0
// A call that creates or starts something in the engine and runs to completion even if its caller
// is cancelled. Otherwise the engine would continue alone: what it creates after a clean-up has
// listed its objects would stay forever, what it starts after a stop would keep running. So a
// cancelled operation waits for the answer and ends with the next step. Only `calls.cancel()`, when
// the daemon ends, interrupts the call: the next start cleans up.
#pragma once

#include <functional>
#include <utility>

#include "async/await_callback.h"
#include "async/cancellation.h"
#include "async/task_group.h"
#include "engine/engine_error.h"

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
