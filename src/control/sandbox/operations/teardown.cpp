// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/operations/teardown.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "control/sandbox/operations/step.h"

namespace agbox {

asio::awaitable<OperationResult<>> teardown(OperationServices& services, SandboxPlace& place,
                                            SandboxFacts& facts) {
  AGBOX_CO_TRY_VOID(co_await services.engine.remove(facts));
  // Last: the directory must outlive the container that has it mounted.
  co_return co_await step("delete.guest_directory", place.remove(facts));
}

asio::awaitable<OperationResult<>> teardown_within(OperationServices& services, SandboxPlace& place,
                                                   SandboxFacts& facts,
                                                   std::chrono::nanoseconds limit) {
  using asio::experimental::awaitable_operators::operator||;
  asio::steady_timer timer(co_await asio::this_coro::executor, limit);
  auto first = co_await (teardown(services, place, facts) || timer.async_wait(asio::use_awaitable));
  if (first.index() == 0) co_return std::get<0>(std::move(first));
  co_return std::unexpected(OperationFailure(
      OperationEnd::Retry, "clean-up of sandbox " + facts.sandbox_id + " took too long"));
}

}  // namespace agbox
