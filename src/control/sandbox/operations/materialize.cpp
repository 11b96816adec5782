// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/operations/materialize.h"

#include <utility>

#include "control/sandbox/operations/start_primary.h"
#include "control/sandbox/operations/step.h"
#include "model/network/resolv_conf.h"

namespace agbox {
namespace {

// The stored spec may have been accepted by another version of the daemon.
Result<> check_stored(const SandboxFacts& facts) {
  AGBOX_TRY_VOID(check_supported(facts.spec.create_spec));
  const auto& dns = facts.created_with.dns();
  return check_resolvers({dns.begin(), dns.end()});
}

// Loads the engine, so limited to a few sandboxes at a time.
asio::awaitable<OperationResult<>> create_and_start(OperationServices& services,
                                                    SandboxPlace& place, SandboxFacts& facts,
                                                    SandboxCompanions& companions) {
  // Before its turn: a disk that hangs must not hold up the starts of others.
  AGBOX_CO_TRY_VOID(co_await step("create.mounts", place.pin_mounts(facts)));
  AGBOX_CO_TRY(turn, co_await step("create.turn", services.starts.acquire()));
  AGBOX_CO_TRY(attachments, co_await step("create.output_directory", place.prepare(facts)));
  AGBOX_CO_TRY_VOID(co_await services.engine.ensure_workload(facts, std::move(attachments)));
  AGBOX_CO_TRY_VOID(co_await admit_companions(services, place, companions));
  co_return co_await start_primary(services, place, facts);
}

}  // namespace

asio::awaitable<OperationResult<>> materialize(OperationServices& services, SandboxPlace& place,
                                               SandboxFacts& facts, SandboxCompanions& companions,
                                               Engine::Progress progress) {
  AGBOX_CO_TRY_VOID(check_stored(facts));
  // Their images are pulled while the primary is made.
  companions.begin(CompanionBegin::Create, progress);
  AGBOX_CO_TRY_VOID(co_await services.engine.ensure_image(facts, progress));
  AGBOX_CO_TRY_VOID(co_await step("create.isolation", services.isolation.in_place()));
  AGBOX_CO_TRY_VOID(co_await create_and_start(services, place, facts, companions));
  AGBOX_CO_TRY_VOID(co_await await_guest(services, place, facts));
  AGBOX_CO_TRY_VOID(co_await verify_isolation(services, place, facts));
  AGBOX_CO_TRY_VOID(co_await copy_into_primary(services, place, facts, std::move(progress)));
  AGBOX_CO_TRY_VOID(co_await start_entrypoint(services, place, facts));
  companions.primary_is_up(facts.containers[""].start_count());
  co_return co_await step("create.required", companions.finish_required());
}

}  // namespace agbox
