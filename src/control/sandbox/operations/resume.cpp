// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/operations/resume.h"

#include "control/sandbox/operations/start_primary.h"
#include "control/sandbox/operations/step.h"
#include "model/object_names.h"

namespace agbox {
namespace {

std::unexpected<OperationFailure> gone(const std::string& what, const SandboxFacts& facts) {
  return refuse(what + " is gone, and a resume makes nothing anew; delete sandbox " +
                facts.sandbox_id + " and create another");
}

asio::awaitable<OperationResult<>> require_network(Services& services, const SandboxFacts& facts) {
  const std::string name = network_name(facts.sandbox_id);
  AGBOX_CO_TRY(network, co_await step("resume.network",
                                      services.engine.find_network_of(owner_of(services, facts),
                                                                      name, on_its_engine(facts))));
  if (!network) co_return gone("network " + name, facts);
  co_return OperationResult<>{};
}

asio::awaitable<OperationResult<ContainerSeen>> require_container(Services& services,
                                                                  const SandboxFacts& facts) {
  const std::string id = facts.primary_id();
  AGBOX_CO_TRY(container, co_await step("resume.container",
                                        services.engine.find_container_of(
                                            owner_of(services, facts), id, on_its_engine(facts))));
  if (!container) {
    co_return gone(
        "container " + primary_container_name(facts.sandbox_id) + " (id " + id.substr(0, 12) + ")",
        facts);
  }
  co_return std::move(*container);
}

// What loads the engine, a few sandboxes at a time.
asio::awaitable<OperationResult<>> bring_up(Services& services, SandboxPlace& place,
                                            SandboxFacts& facts, const ContainerSeen& container) {
  AGBOX_CO_TRY(turn, co_await step("resume.turn", services.starts.acquire()));
  // Started by an attempt that was interrupted, or by somebody else. The guest in there may have
  // been told a secret that we do not know, so it begins again.
  if (container.is_up()) {
    AGBOX_CO_TRY_VOID(co_await step(
        "resume.stop",
        services.engine.stop_if_there(container.id, kContainerStopGrace, on_its_engine(facts))));
  }
  AGBOX_CO_TRY_VOID(place.adopt(facts));
  co_return co_await start_primary(services, place, facts);
}

}  // namespace

asio::awaitable<OperationResult<>> resume_sandbox(Services& services, SandboxPlace& place,
                                                  SandboxFacts& facts) {
  AGBOX_CO_TRY_VOID(co_await step("resume.isolation", services.isolation.in_place()));
  AGBOX_CO_TRY_VOID(co_await require_network(services, facts));
  AGBOX_CO_TRY(container, co_await require_container(services, facts));
  AGBOX_CO_TRY_VOID(co_await bring_up(services, place, facts, container));
  AGBOX_CO_TRY_VOID(co_await await_guest(services, place, facts));
  AGBOX_CO_TRY_VOID(co_await prove_isolation(services, place, facts));
  co_return co_await let_go(services, place, facts);
}

asio::awaitable<OperationResult<>> undo_resume(Services& services, SandboxPlace& place,
                                               const SandboxFacts& facts) {
  AGBOX_CO_TRY_VOID(co_await step(
      "resume.undo", services.engine.stop_if_there(facts.primary_id(), kContainerStopGrace,
                                                   on_its_engine(facts))));
  place.rest();
  co_return OperationResult<>{};
}

}  // namespace agbox
