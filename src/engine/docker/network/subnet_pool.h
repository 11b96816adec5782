// SPDX-License-Identifier: Apache-2.0
// Chooses the network of a new sandbox: none that overlaps one of our sandboxes, a route of the
// host or a network of the engine.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/docker/network/host_network_access.h"
#include "model/network/ipv4.h"

namespace agbox {

class SubnetPool {
 public:
  SubnetPool(Ipv4Network pool, std::string our_bridges, const HostNetworkAccess& host)
      : pool_(pool), our_bridges_(std::move(our_bridges)), networks_in_use_(host.networks_in_use) {}

  // Also reserves it. `engine_subnets` are as the engine lists them, if queried; IPv6 is ignored.
  Result<Ipv4Network> choose(const std::vector<std::string>& engine_subnets = {});
  // What a choice would avoid now.
  Result<std::vector<Ipv4Network>> occupied(const std::vector<std::string>& engine_subnets) const;
  const Ipv4Network& pool() const { return pool_; }
  void take(const std::string& subnet);
  void give_back(const std::string& subnet);

 private:
  Ipv4Network pool_;
  std::string our_bridges_;
  std::function<Result<std::vector<Ipv4Network>>(std::string_view)> networks_in_use_;
  std::optional<Ipv4Network> previous_;
  std::set<Ipv4Network> taken_;
};

}  // namespace agbox
