// SPDX-License-Identifier: Apache-2.0
// A step of an operation: awaits it, with a failpoint on both sides, and ends the operation with
// its error. An operation that was given up ends at the next of these sides. `hold` at a failpoint
// (see base/failpoint.h) waits until the operation is cancelled.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string_view>

#include "base/failpoint.h"
#include "base/result.h"

namespace agbox {

// The failpoint as something to await. CANCELLED where the operation was given up, before or while
// it held.
boost::asio::awaitable<Result<>> pass_failpoint(std::string_view name);

}  // namespace agbox

#define AGBOX_STEP(name, point, expression)                             \
  AGBOX_CO_TRY_VOID(co_await ::agbox::pass_failpoint(point ".before")); \
  AGBOX_CO_TRY(name, expression);                                       \
  AGBOX_CO_TRY_VOID(co_await ::agbox::pass_failpoint(point ".after"))

// The same where the step gives nothing.
#define AGBOX_STEP_VOID(point, expression)                              \
  AGBOX_CO_TRY_VOID(co_await ::agbox::pass_failpoint(point ".before")); \
  AGBOX_CO_TRY_VOID(expression);                                        \
  AGBOX_CO_TRY_VOID(co_await ::agbox::pass_failpoint(point ".after"))
