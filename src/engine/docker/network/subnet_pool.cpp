// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/network/subnet_pool.h"

#include "model/network/sandbox_subnet.h"

namespace agbox {

Result<std::vector<Ipv4Network>> SubnetPool::occupied(
    const std::vector<std::string>& engine_subnets) const {
  // Read each time: routes come and go with VPNs.
  AGBOX_TRY(occupied, networks_in_use_(our_bridges_));
  occupied.insert(occupied.end(), taken_.begin(), taken_.end());
  for (const std::string& text : engine_subnets) {
    if (const auto network = parse_ipv4_network(text)) occupied.push_back(*network);
  }
  return occupied;
}

Result<Ipv4Network> SubnetPool::choose(const std::vector<std::string>& engine_subnets) {
  AGBOX_TRY(avoided, occupied(engine_subnets));
  const auto chosen = next_free_network(pool_, previous_, avoided);
  if (!chosen) {
    return fail(reason::kResourceExhausted,
                "no network is left in network.address_pool " + pool_.text() +
                    "; delete sandboxes, or set a larger pool in config.toml");
  }
  previous_ = *chosen;
  taken_.insert(*chosen);
  return *chosen;
}

void SubnetPool::take(const std::string& subnet) {
  if (const auto network = parse_ipv4_network(subnet)) taken_.insert(*network);
}

void SubnetPool::give_back(const std::string& subnet) {
  if (const auto network = parse_ipv4_network(subnet)) taken_.erase(*network);
}

}  // namespace agbox
