// SPDX-License-Identifier: Apache-2.0
// The state of the host's firewall as `agbox doctor` reports it.
#pragma once

#include <string>
#include <vector>

namespace agbox {

// One table of ours.
struct TableFacts {
  std::string name;
  std::string difference;  // from the expected table; empty if there is none
};

// A chain of another program that drops every forwarded packet which it does not accept.
struct DroppingChain {
  std::string table;  // as `nft` takes it: "inet filter"
  std::string chain;
  bool accepts_nothing = false;    // no rule accepts, and none jumps to another chain
  bool accepts_sandboxes = false;  // all packets from our bridges and all packets to them

  bool operator==(const DroppingChain&) const = default;
};

struct FirewallFacts {
  std::vector<TableFacts> tables;
  std::vector<DroppingChain> dropping_chains;
};

}  // namespace agbox
