// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/operations/teardown.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "control/sandbox/operations/network_removal.h"
#include "control/sandbox/operations/start_primary.h"
#include "control/sandbox/operations/step.h"
#include "model/object_names.h"

namespace agbox {
namespace {

asio::awaitable<OperationResult<>> remove_containers(Services& services, ObjectOwner owner,
                                                     CallOptions options) {
  co_return co_await step("delete.containers",
                          services.engine.remove_containers_of(std::move(owner), options));
}

asio::awaitable<OperationResult<>> remove_detached_networks(Services& services, ObjectOwner owner,
                                                            CallOptions options) {
  co_return co_await step("delete.detached_networks",
                          services.engine.remove_networks_of(std::move(owner), options));
}

}  // namespace

asio::awaitable<OperationResult<>> teardown(Services& services, SandboxPlace& place,
                                            SandboxFacts& facts) {
  const ObjectOwner owner = owner_of(services, facts);
  const CallOptions options = on_its_engine(facts);
  // A network goes while those that were its members end; that spares a third of the time.
  AGBOX_CO_TRY_VOID(co_await step(
      "delete.detach",
      services.engine.detach_containers_of(owner, network_name(facts.sandbox_id), options)));
  using asio::experimental::awaitable_operators::operator&&;
  const auto [removed, early] = co_await (remove_containers(services, owner, options) &&
                                          remove_detached_networks(services, owner, options));
  if (!removed) co_return removed;
  // One that was refused then, because a member could not be detached, has none any more.
  AGBOX_CO_TRY_VOID(
      co_await step("delete.networks", remove_networks(services, owner, options, services.log)));
  // Last of all: the folder must outlive the container that has it mounted.
  AGBOX_CO_TRY_VOID(co_await step("delete.guest_directory", place.remove(facts)));
  facts.containers.clear();
  if (facts.subnet) services.subnets.give_back(*facts.subnet);
  facts.subnet.reset();
  co_return OperationResult<>{};
}

asio::awaitable<OperationResult<>> teardown_within(Services& services, SandboxPlace& place,
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
