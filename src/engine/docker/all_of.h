// SPDX-License-Identifier: Apache-2.0
// Several calls to the engine at the same time.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>
#include <vector>

#include "async/cancellation.h"
#include "engine/engine_error.h"

namespace agbox {

// Waits for all; returns the failure of the first that failed, in their order.
inline EngineAwaitable<> all_of(asio::any_io_executor executor,
                                std::vector<EngineAwaitable<>> tasks) {
  if (tasks.empty()) co_return EngineResult<>{};
  if (co_await is_cancelled()) co_return engine_fail(EngineErrorKind::Cancelled, "cancelled");
  using Operation =
      decltype(asio::co_spawn(executor, std::declval<EngineAwaitable<>>(), asio::deferred));
  std::vector<Operation> operations;
  operations.reserve(tasks.size());
  for (EngineAwaitable<>& task : tasks) {
    operations.push_back(asio::co_spawn(executor, std::move(task), asio::deferred));
  }
  auto [order, exceptions, results] =
      co_await asio::experimental::make_parallel_group(std::move(operations))
          .async_wait(asio::experimental::wait_for_all(), asio::use_awaitable);
  for (const std::exception_ptr& exception : exceptions) {
    if (exception) std::rethrow_exception(exception);  // a bug; failures are values
  }
  for (EngineResult<>& result : results) {
    if (!result) co_return std::unexpected(std::move(result.error()));
  }
  co_return EngineResult<>{};
}

}  // namespace agbox
