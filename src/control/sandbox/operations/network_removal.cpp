// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/operations/network_removal.h"

#include <chrono>
#include <string>
#include <utility>

#include "async/retry_pause.h"
#include "async/run_blocking.h"
#include "isolation/netlink/host_link.h"
#include "model/object_names.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

// At a bridge without a network, before it counts as forgotten: the engine may be making the
// network still, for a daemon that was killed meanwhile.
constexpr int kLooks = 4;
constexpr auto kFirstPause = 50ms;
constexpr auto kLongestPause = 400ms;

}  // namespace

EngineAwaitable<> remove_networks(Services& services, ObjectOwner owner, CallOptions options,
                                  Logger log) {
  const std::string bridge = bridge_name(owner.instance, owner.sandbox_id);
  RetryPause pause(services.loop.io().get_executor(), kFirstPause, kLongestPause);
  for (int looks = 0; looks < kLooks; ++looks) {
    AGBOX_CO_TRY_VOID(co_await services.engine.remove_networks_of(owner, options));
    const bool is_left =
        co_await run_blocking(services.blocking, [&bridge] { return has_link(bridge); });
    if (!is_left) co_return EngineResult<>{};
    if (!co_await pause.wait()) break;
  }
  co_return co_await remove_forgotten_bridges(services, {bridge}, std::move(options),
                                              log.with({"sandbox_id", owner.sandbox_id}));
}

EngineAwaitable<> remove_forgotten_bridges(Services& services, std::vector<std::string> bridges,
                                           CallOptions options, Logger log) {
  if (bridges.empty()) co_return EngineResult<>{};
  AGBOX_CO_TRY(networks, co_await services.engine.list_networks({}, std::move(options)));
  for (const NetworkSeen& network : networks) std::erase(bridges, network.bridge_name);
  for (const std::string& bridge : bridges) {
    log.warn("bridge that the engine forgot is removed", {{"bridge", bridge}});
    const auto removed =
        co_await run_blocking(services.blocking, [&bridge] { return remove_link(bridge); });
    if (!removed) {
      log.warn("bridge that the engine forgot stays",
               {{"bridge", bridge}, {"error", removed.error().message()}});
    }
  }
  co_return EngineResult<>{};
}

}  // namespace agbox
