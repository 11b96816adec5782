// SPDX-License-Identifier: Apache-2.0
#include "control/subnet_pool.h"

#include <fstream>
#include <iterator>

#include "model/host_routes.h"
#include "model/sandbox_subnet.h"

namespace agbox {

std::vector<Ipv4Network> host_routes(std::string_view our_bridges) {
  std::ifstream file("/proc/net/route");
  const std::string routes{std::istreambuf_iterator<char>(file), {}};
  return read_host_routes(routes, our_bridges);
}

std::vector<Ipv4Network> SubnetPool::occupied(
    const std::vector<std::string>& engine_subnets) const {
  std::vector<Ipv4Network> occupied(taken_.begin(), taken_.end());
  for (const std::string& text : engine_subnets) {
    if (const auto network = parse_ipv4_network(text)) occupied.push_back(*network);
  }
  // Read each time: routes come and go with VPNs.
  for (const Ipv4Network& route : host_routes(our_bridges_)) occupied.push_back(route);
  return occupied;
}

Result<Ipv4Network> SubnetPool::choose(const std::vector<std::string>& engine_subnets) {
  const auto chosen = next_free_network(pool_, previous_, occupied(engine_subnets));
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
