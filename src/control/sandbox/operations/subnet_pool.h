// SPDX-License-Identifier: Apache-2.0
// Chooses the network of a new sandbox: none that a sandbox of ours, a route of the host or a
// network of the engine overlaps.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/network/ipv4.h"

namespace agbox {

class SubnetPool {
 public:
  SubnetPool(Ipv4Network pool, std::string our_bridges)
      : pool_(pool), our_bridges_(std::move(our_bridges)) {}

  // Takes it. `engine_subnets` are the engine's own words, where it was asked; an IPv6 one is
  // nothing that we could meet.
  Result<Ipv4Network> choose(const std::vector<std::string>& engine_subnets = {});
  // What a choice would avoid now.
  Result<std::vector<Ipv4Network>> occupied(const std::vector<std::string>& engine_subnets) const;
  const Ipv4Network& pool() const { return pool_; }
  void take(const std::string& subnet);
  void give_back(const std::string& subnet);

 private:
  Ipv4Network pool_;
  std::string our_bridges_;
  std::optional<Ipv4Network> previous_;
  std::set<Ipv4Network> taken_;
};

}  // namespace agbox
