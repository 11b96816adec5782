// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/operations/resume.h"

#include "control/sandbox/operations/start_primary.h"
#include "control/sandbox/operations/step.h"

namespace agbox {
namespace {

// Loads the engine, so limited to a few sandboxes at a time.
asio::awaitable<OperationResult<>> find_and_start(OperationServices& services, SandboxPlace& place,
                                                  SandboxFacts& facts,
                                                  SandboxCompanions& companions) {
  // Before its turn: a disk that hangs must not hold up the starts of others.
  AGBOX_CO_TRY_VOID(co_await step("resume.mounts", place.pin_mounts(facts)));
  AGBOX_CO_TRY(turn, co_await step("resume.turn", services.starts.acquire()));
  AGBOX_CO_TRY_VOID(co_await services.engine.require_workload(facts));
  AGBOX_CO_TRY_VOID(co_await admit_companions(services, place, companions));
  AGBOX_CO_TRY_VOID(co_await step("resume.adopt", place.adopt(facts)));
  co_return co_await start_primary(services, place, facts);
}

}  // namespace

asio::awaitable<OperationResult<>> resume_sandbox(OperationServices& services, SandboxPlace& place,
                                                  SandboxFacts& facts,
                                                  SandboxCompanions& companions) {
  AGBOX_CO_TRY_VOID(co_await step("resume.isolation", services.isolation.in_place()));
  AGBOX_CO_TRY_VOID(co_await find_and_start(services, place, facts, companions));
  AGBOX_CO_TRY_VOID(co_await await_guest(services, place, facts));
  AGBOX_CO_TRY_VOID(co_await verify_isolation(services, place, facts));
  AGBOX_CO_TRY_VOID(co_await start_entrypoint(services, place, facts));
  companions.primary_is_up(facts.containers[""].start_count());
  co_return co_await step("resume.required", companions.finish_required());
}

asio::awaitable<OperationResult<>> undo_resume(OperationServices& services, SandboxPlace& place,
                                               const SandboxFacts& facts) {
  AGBOX_CO_TRY_VOID(co_await step("resume.undo", services.engine.stop(facts)));
  place.rest();
  co_return OperationResult<>{};
}

}  // namespace agbox
