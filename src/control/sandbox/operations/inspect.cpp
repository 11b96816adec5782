// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/operations/inspect.h"

#include "control/sandbox/operations/step.h"

namespace agbox {

asio::awaitable<OperationResult<SandboxInspection>> inspect_sandbox(OperationServices& services,
                                                                    const SandboxFacts& facts) {
  // After a restart of the daemon or of the engine, all sandboxes are inspected at once.
  AGBOX_CO_TRY(turn, co_await step("inspect.turn", services.inspections.acquire()));
  co_return co_await services.engine.inspect(facts);
}

asio::awaitable<OperationResult<>> stop_unusable(OperationServices& services,
                                                 const SandboxFacts& facts) {
  co_return co_await step("inspect.stop", services.engine.stop(facts));
}

}  // namespace agbox
