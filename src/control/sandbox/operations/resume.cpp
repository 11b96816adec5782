// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/operations/resume.h"

#include "control/sandbox/operations/start_primary.h"
#include "control/sandbox/operations/step.h"

namespace agbox {
namespace {

// What loads the engine, a few sandboxes at a time.
asio::awaitable<OperationResult<>> find_and_start(Services& services, SandboxFacts& facts) {
  AGBOX_CO_TRY(turn, co_await step("resume.turn", services.starts.acquire()));
  AGBOX_CO_TRY_VOID(co_await services.engine.require_workload(facts));
  const store::v1::Container& primary = facts.containers.at("");
  AGBOX_CO_TRY_VOID(services.guests.adopt(
      facts.sandbox_id,
      {.device = primary.guest_folder_device(), .inode = primary.guest_folder_inode()},
      facts.link_root()));
  co_return co_await start_primary(services, facts);
}

}  // namespace

asio::awaitable<OperationResult<>> resume_sandbox(Services& services, SandboxFacts& facts) {
  AGBOX_CO_TRY_VOID(co_await step("resume.isolation", services.isolation.in_place()));
  AGBOX_CO_TRY_VOID(co_await find_and_start(services, facts));
  AGBOX_CO_TRY_VOID(co_await await_guest(services, facts));
  AGBOX_CO_TRY_VOID(co_await prove_isolation(services, facts));
  co_return co_await let_go(services, facts);
}

asio::awaitable<OperationResult<>> undo_resume(Services& services, const SandboxFacts& facts) {
  AGBOX_CO_TRY_VOID(co_await step("resume.undo", services.engine.stop(facts)));
  services.guests.rest(facts.sandbox_id);
  co_return OperationResult<>{};
}

}  // namespace agbox
