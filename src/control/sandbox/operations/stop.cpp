// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/operations/stop.h"

#include <chrono>

#include "control/sandbox/operations/pause.h"
#include "control/sandbox/operations/start_primary.h"
#include "control/sandbox/operations/step.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

// The guest kills after two seconds what does not end by itself. What is not told by then, because
// no guest answers or the kernel does not let go of a process, ends with the container.
constexpr auto kExecLimit = 3s;

}  // namespace

asio::awaitable<OperationResult<>> stop_sandbox(Services& services, const SandboxFacts& facts,
                                                SandboxExecs& execs) {
  // The engine unpauses what it stops, and what ends gracefully would run without its isolation.
  const bool at_once = is_paused(facts);
  const auto limit = std::chrono::steady_clock::now() + (at_once ? 0s : kExecLimit);
  const auto grace = at_once ? 0s : kContainerStopGrace;
  AGBOX_CO_TRY_VOID(co_await step("stop.execs", execs.wait_for_ends(limit)));
  AGBOX_CO_TRY_VOID(co_await step(
      "stop.container",
      services.engine.stop_if_there(facts.primary_id(), grace, on_its_engine(facts))));
  // Nobody is in there any more who could have anything to say.
  services.guests.rest(facts.sandbox_id);
  co_return OperationResult<>{};
}

asio::awaitable<OperationResult<>> halt_sandbox(Services& services, const SandboxFacts& facts) {
  const ObjectOwner owner = owner_of(services, facts);
  AGBOX_CO_TRY(listed, co_await step("halt.list", services.engine.list_containers(
                                                      owner.labels(), on_its_engine(facts))));
  for (const ContainerListed& container : listed) {
    if (!owner.owns(container.labels)) continue;
    AGBOX_CO_TRY_VOID(co_await step(
        "halt.stop",
        services.engine.stop_if_there(container.id, kContainerStopGrace, on_its_engine(facts))));
  }
  co_return OperationResult<>{};
}

}  // namespace agbox
