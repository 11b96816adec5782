// SPDX-License-Identifier: Apache-2.0
#include "async/step.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <string>

#include "async/cancellation.h"
#include "base/failpoint.h"
#include "base/log.h"

namespace agbox {

namespace asio = boost::asio;

namespace {

constexpr Reason kFailpointReason{ErrorCode::Internal, "FAILPOINT"};

}  // namespace

asio::awaitable<Result<>> pass_failpoint(std::string_view step, std::string_view side) {
  // Between two steps a cancellation is only recorded: do not start the next step.
  if (co_await is_cancelled()) co_return fail(reason::kCancelled, "cancelled");
  if (!failpoint::active.load(std::memory_order_relaxed)) co_return Result<>{};
  const std::string name = std::string(step).append(side);
  const failpoint::Action action = failpoint::passed(name);
  if (action == failpoint::Action::Error) co_return fail(kFailpointReason, "failpoint " + name);
  if (action == failpoint::Action::Hold) {
    // Tests wait for this line.
    Logger().info("held at a failpoint", {{"failpoint", name}});
    asio::steady_timer forever(co_await asio::this_coro::executor,
                               asio::steady_timer::time_point::max());
    co_await forever.async_wait(asio::as_tuple(asio::use_awaitable));
    co_return fail(reason::kCancelled, "held at failpoint " + name);
  }
  co_return Result<>{};
}

}  // namespace agbox
