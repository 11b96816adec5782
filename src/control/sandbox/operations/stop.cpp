// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/operations/stop.h"

#include <chrono>

#include "control/sandbox/operations/step.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

// The guest kills after two seconds what has not ended by itself. What is not reported by then,
// because no guest responds or the kernel does not release a process, ends with the container.
constexpr auto kExecLimit = 3s;

}  // namespace

asio::awaitable<OperationResult<>> stop_sandbox(OperationServices& services, SandboxPlace& place,
                                                const SandboxFacts& facts, SandboxExecs& execs) {
  // Paused execs do not end by themselves.
  const auto limit = std::chrono::steady_clock::now() + (facts.is_paused() ? 0s : kExecLimit);
  AGBOX_CO_TRY_VOID(co_await step("stop.execs", execs.wait_for_ends(limit)));
  AGBOX_CO_TRY_VOID(co_await step("stop.container", services.engine.stop(facts)));
  // Nothing runs in the container any more, so no guest will connect.
  place.rest();
  co_return OperationResult<>{};
}

asio::awaitable<OperationResult<>> halt_sandbox(OperationServices& services,
                                                const SandboxFacts& facts) {
  co_return co_await services.engine.stop_all(facts);
}

}  // namespace agbox
