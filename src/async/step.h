// SPDX-License-Identifier: Apache-2.0
// One await of an operation that tests can interrupt: it has a failpoint on both sides. A cancelled
// operation ends at the next of these sides. `hold` at a failpoint (see base/failpoint.h) waits
// until the operation is cancelled.
//
// A layer has its own step(), which calls step_as() with the failure of its operations;
// scripts/check-failpoints checks that they await nothing else without a step.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <expected>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/result.h"

namespace agbox {

// The failpoint `step` + `side`. CANCELLED if the operation was cancelled, before or while it held.
boost::asio::awaitable<Result<>> pass_failpoint(std::string_view step, std::string_view side);

// `work`, between the failpoints `name`.before and `name`.after.
template <class Failure, class T, class WorkFailure>
boost::asio::awaitable<std::expected<T, Failure>> step_as(
    std::string_view name, boost::asio::awaitable<std::expected<T, WorkFailure>> work) {
  AGBOX_CO_TRY_VOID(co_await pass_failpoint(name, ".before"));
  std::expected<T, WorkFailure> done = co_await std::move(work);
  if (!done) co_return std::unexpected<Failure>(std::move(done.error()));
  AGBOX_CO_TRY_VOID(co_await pass_failpoint(name, ".after"));
  if constexpr (std::is_void_v<T>) {
    co_return std::expected<T, Failure>{};
  } else {
    co_return std::move(*done);
  }
}

}  // namespace agbox
