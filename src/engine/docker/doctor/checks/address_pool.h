// SPDX-License-Identifier: Apache-2.0
// Are networks left in network.address_pool, and does the host use none of its addresses?
#pragma once

#include <cstdint>

#include "engine/docker/doctor/check_context.h"
#include "model/network/sandbox_subnet.h"
#include "model/object_names.h"

namespace agbox {

struct AddressPoolCheck {
  static constexpr std::string_view kName = "address-pool";
  static constexpr std::uint64_t kFewFreeShare = 10;  // a warning below a tenth of the pool

  Ipv4Network pool;
  Result<std::vector<Ipv4Network>> in_use;  // by this host, except bridges of sandboxes
  Result<std::vector<Ipv4Network>> taken;   // by sandboxes, the engine and this host

  static AddressPoolCheck gather(const EngineCheckContext& context) {
    return {.pool = context.subnets.pool(),
            .in_use = context.host.networks_in_use(kBridgePrefix),
            .taken = context.subnets.occupied(context.engine ? context.engine->subnets
                                                             : std::vector<std::string>())};
  }

  void judge(Findings& findings) const {
    if (!in_use) return findings.unknown("not checked: " + in_use.error().message());
    if (!taken) return findings.unknown("not checked: " + taken.error().message());
    if (const auto checked = check_address_pool(pool, *in_use); !checked) {
      return findings.broken(checked.error().message(),
                             "set network.address_pool in config.toml to a free network, then: " +
                                 std::string(kRestartDaemon));
    }
    const std::uint64_t all = network_count(pool);
    const std::uint64_t left = free_network_count(pool, *taken);
    const std::string sentence = std::to_string(left) + " of " + std::to_string(all) +
                                 " networks for sandboxes are free in " + pool.text();
    const std::string remedy =
        "delete sandboxes that are no longer needed, or set a larger network.address_pool in "
        "config.toml";
    if (left == 0) {
      findings.broken(sentence + ", so no sandbox can be created", remedy);
    } else if (left * kFewFreeShare < all) {
      findings.warn(sentence, remedy);
    } else {
      findings.ok(sentence);
    }
  }
};

}  // namespace agbox
