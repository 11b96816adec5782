// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/operations/look.h"

#include "control/sandbox/operations/start_primary.h"
#include "control/sandbox/operations/step.h"
#include "control/sandbox/operations/stop.h"
#include "model/object_names.h"

namespace agbox {

asio::awaitable<OperationResult<SandboxLook>> look_at_sandbox(Services& services,
                                                              const SandboxFacts& facts) {
  // After a restart of the daemon or of the engine all sandboxes ask at once.
  AGBOX_CO_TRY(turn, co_await step("look.turn", services.looks.acquire()));
  AGBOX_CO_TRY(container,
               co_await step("look.inspect", services.engine.find_container(facts.primary_id(),
                                                                            on_its_engine(facts))));
  const auto kept = facts.containers.find("");
  const store::v1::Container none;
  SandboxLook look = judge_primary(kept == facts.containers.end() ? none : kept->second, container,
                                   owner_of(services, facts));
  const std::string name = network_name(facts.sandbox_id);
  if (container && container->is_up()) {
    look.seen.has_network = container->networks.contains(name);
  } else if (container) {
    AGBOX_CO_TRY(network, co_await step("look.network", services.engine.find_network_of(
                                                            owner_of(services, facts), name,
                                                            on_its_engine(facts))));
    look.seen.has_network = network.has_value();
  }
  co_return look;
}

asio::awaitable<OperationResult<>> stop_unusable(Services& services, const SandboxFacts& facts) {
  co_return co_await step(
      "look.stop",
      services.engine.stop_if_there(facts.primary_id(), kContainerStopGrace, on_its_engine(facts)));
}

}  // namespace agbox
