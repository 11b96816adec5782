// SPDX-License-Identifier: Apache-2.0
#include "control/network_removal.h"

#include <string>
#include <utility>

#include "isolation/host_link.h"
#include "model/object_names.h"

namespace agbox {

EngineAwaitable<> remove_networks(EngineClient& engine, ObjectOwner owner, CallOptions options,
                                  Logger log) {
  AGBOX_CO_TRY_VOID(co_await engine.remove_networks_of(owner, options));
  const std::string bridge = bridge_name(owner.instance, owner.sandbox_id);
  if (!has_link(bridge)) co_return EngineResult<>{};
  co_return co_await remove_forgotten_bridges(engine, {bridge}, std::move(options),
                                              log.with({"sandbox_id", owner.sandbox_id}));
}

EngineAwaitable<> remove_forgotten_bridges(EngineClient& engine, std::vector<std::string> bridges,
                                           CallOptions options, Logger log) {
  if (bridges.empty()) co_return EngineResult<>{};
  AGBOX_CO_TRY(networks, co_await engine.list_networks({}, std::move(options)));
  for (const NetworkSeen& network : networks) std::erase(bridges, network.bridge_name);
  for (const std::string& bridge : bridges) {
    log.warn("bridge that the engine forgot is removed", {{"bridge", bridge}});
    if (const auto removed = remove_link(bridge); !removed) {
      log.warn("bridge that the engine forgot stays",
               {{"bridge", bridge}, {"error", removed.error().message()}});
    }
  }
  co_return EngineResult<>{};
}

}  // namespace agbox
