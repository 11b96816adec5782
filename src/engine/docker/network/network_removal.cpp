// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/network/network_removal.h"

#include <chrono>

#include "async/retry_timer.h"
#include "async/run_blocking.h"
#include "model/object_names.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

// Before a bridge without a network counts as forgotten: the engine may still be creating the
// network, for a daemon that was killed.
constexpr int kBridgeChecks = 4;
constexpr auto kFirstBridgeDelay = 50ms;
constexpr auto kLongestBridgeDelay = 400ms;

}  // namespace

EngineAwaitable<> NetworkRemoval::remove_networks(ObjectOwner owner, CallOptions options) {
  const std::string bridge = bridge_name(owner.instance, owner.sandbox_id);
  RetryTimer timer(client_.executor(), kFirstBridgeDelay, kLongestBridgeDelay);
  for (int checks = 0; checks < kBridgeChecks; ++checks) {
    AGBOX_CO_TRY_VOID(co_await client_.remove_networks_of(owner, options));
    const bool is_left =
        co_await run_blocking(blocking_, [this, &bridge] { return host_.has_link(bridge); });
    if (!is_left) co_return EngineResult<>{};
    if (!co_await timer.wait()) break;
  }
  co_return co_await remove_forgotten_bridges({bridge}, std::move(options),
                                              log_.with({"sandbox_id", owner.sandbox_id}));
}

asio::awaitable<Result<std::vector<std::string>>> NetworkRemoval::find_bridges(
    std::string instance) {
  co_return co_await run_blocking(
      blocking_, [this, &instance] { return host_.find_links(bridge_prefix(instance)); });
}

EngineAwaitable<> NetworkRemoval::remove_forgotten_bridges(std::vector<std::string> bridges,
                                                           CallOptions options, Logger log) {
  if (bridges.empty()) co_return EngineResult<>{};
  AGBOX_CO_TRY(networks, co_await client_.list_networks({}, std::move(options)));
  for (const NetworkSeen& network : networks) std::erase(bridges, network.bridge_name);
  for (const std::string& bridge : bridges) {
    log.warn("bridge that the engine forgot is removed", {{"bridge", bridge}});
    const auto removed =
        co_await run_blocking(blocking_, [this, &bridge] { return host_.remove_link(bridge); });
    if (!removed) {
      log.warn("bridge that the engine forgot stays",
               {{"bridge", bridge}, {"error", removed.error().message()}});
    }
  }
  co_return EngineResult<>{};
}

}  // namespace agbox
