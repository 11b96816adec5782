// SPDX-License-Identifier: Apache-2.0
// One await of an operation, with a failpoint on both sides. An operation that was given up ends at
// the next of these sides. `hold` at a failpoint (see base/failpoint.h) waits until the operation
// is cancelled. scripts/check-failpoints sees to it that operations await nothing of others
// without a step.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <expected>
#include <string_view>
#include <type_traits>
#include <utility>

#include "control/sandbox/operations/operation.h"

namespace agbox {

// The failpoint `step` + `side`. Cancelled where the operation was given up, before or while it
// held.
boost::asio::awaitable<OperationResult<>> pass_failpoint(std::string_view step,
                                                         std::string_view side);

// `work`, between the failpoints `name`.before and `name`.after.
template <class T, class Failure>
boost::asio::awaitable<OperationResult<T>> step(
    std::string_view name, boost::asio::awaitable<std::expected<T, Failure>> work) {
  AGBOX_CO_TRY_VOID(co_await pass_failpoint(name, ".before"));
  std::expected<T, Failure> done = co_await std::move(work);
  if (!done) co_return std::unexpected<OperationFailure>(std::move(done.error()));
  AGBOX_CO_TRY_VOID(co_await pass_failpoint(name, ".after"));
  if constexpr (std::is_void_v<T>) {
    co_return OperationResult<T>{};
  } else {
    co_return std::move(*done);
  }
}

}  // namespace agbox
