// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/operations/pause.h"

#include <utility>

#include "control/sandbox/operations/start_primary.h"
#include "control/sandbox/operations/step.h"
#include "control/sandbox/operations/unbroken_call.h"

namespace agbox {

asio::awaitable<OperationResult<>> pause_sandbox(Services& services, const SandboxFacts& facts) {
  for (const auto& [name, container] : facts.containers) {
    auto call = services.engine.pause_container(container.container_id(), on_its_engine(facts));
    AGBOX_CO_TRY_VOID(co_await step("pause.container", unbroken(services.calls, std::move(call))));
  }
  co_return OperationResult<>{};
}

asio::awaitable<OperationResult<>> unpause_sandbox(Services& services, const SandboxFacts& facts) {
  for (const auto& [name, container] : facts.containers) {
    auto call = services.engine.unpause_if_there(container.container_id(), on_its_engine(facts));
    AGBOX_CO_TRY_VOID(
        co_await step("unpause.container", unbroken(services.calls, std::move(call))));
  }
  co_return OperationResult<>{};
}

bool is_paused(const SandboxFacts& facts) {
  const auto primary = facts.containers.find("");
  return primary != facts.containers.end() &&
         primary->second.paused() != store::v1::Container::PAUSED_NO;
}

}  // namespace agbox
