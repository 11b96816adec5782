// SPDX-License-Identifier: Apache-2.0
#include "control/look.h"

#include "control/step.h"

namespace agbox {

asio::awaitable<Result<std::optional<ContainerSeen>>> look_at_primary(Services& services,
                                                                      const SandboxFacts& facts) {
  const auto primary = facts.containers.find("");
  if (primary == facts.containers.end() || primary->second.container_id().empty()) {
    co_return std::nullopt;
  }
  // After a restart of the daemon or of the engine all sandboxes ask at once.
  AGBOX_CO_TRY(turn, co_await services.looks.enter());
  AGBOX_CO_TRY_VOID(co_await pass_failpoint("look.inspect", ".before"));
  auto seen = co_await services.engine.inspect_container(
      primary->second.container_id(),
      {.deadline = {}, .expected_engine = facts.created_with.engine_id()});
  if (seen) co_return std::move(*seen);
  if (seen.error().kind() == EngineErrorKind::NotFound) co_return std::nullopt;
  co_return std::unexpected(seen.error());
}

}  // namespace agbox
