// SPDX-License-Identifier: Apache-2.0
#include "control/network_removal.h"

#include <algorithm>
#include <string>

#include "isolation/host_link.h"
#include "model/object_names.h"

namespace agbox {

EngineAwaitable<> remove_networks(EngineClient& engine, ObjectOwner owner, CallOptions options,
                                  Logger log) {
  AGBOX_CO_TRY_VOID(co_await engine.remove_networks_of(owner, options));
  const std::string bridge = bridge_name(owner.instance, owner.sandbox_id);
  if (!has_link(bridge)) co_return EngineResult<>{};
  AGBOX_CO_TRY(networks, co_await engine.list_networks({}, options));
  const bool is_in_use = std::ranges::any_of(
      networks, [&bridge](const NetworkSeen& network) { return network.bridge_name == bridge; });
  if (is_in_use) co_return EngineResult<>{};
  log.warn("bridge that the engine forgot is removed",
           {{"sandbox_id", owner.sandbox_id}, {"bridge", bridge}});
  // One that stays does no harm that would be worth a sandbox which cannot be deleted.
  if (const auto removed = remove_link(bridge); !removed) {
    log.warn("bridge that the engine forgot stays",
             {{"sandbox_id", owner.sandbox_id}, {"error", removed.error().message()}});
  }
  co_return EngineResult<>{};
}

}  // namespace agbox
