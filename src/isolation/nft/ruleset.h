// SPDX-License-Identifier: Apache-2.0
// The rules that keep every sandbox of one instance away from the host, the local network and other
// sandboxes: which tables, chains and sets there are and what is in them. Pure; docs/
// isolation_and_security.md says what each part is for. No rule names a sandbox: all of them match
// the bridges by the prefix of their names, so a network never exists before its rules.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "isolation/nft/nft_table.h"
#include "model/network/ipv4.h"

namespace agbox {

// What of the rules depends on the host, and changes while the daemon runs.
struct HostNetwork {
  std::vector<std::string> uplinks;    // the only interfaces to the internet
  std::vector<Ipv4Network> on_link;    // neighbours that no list of private networks knows
  std::vector<Ipv4Address> resolvers;  // reachable on port 53 wherever they are
  bool operator==(const HostNetwork&) const = default;
};

struct RulesetOptions {
  std::string instance_id;
  Ipv4Network address_pool;
  // Whether the kernel can keep the owned tables after the death of their owner.
  bool persist = true;
};

struct Ruleset {
  // Stay when the daemon dies; whoever may change the firewall can remove or alter them.
  std::vector<nft::Table> plain;
  // The same rules once more, which nobody but the daemon can touch while it lives.
  std::vector<nft::Table> owned;
};

Ruleset make_ruleset(const RulesetOptions& options, const HostNetwork& host);

// The sets that follow the host, as they are in every table that has sets.
std::vector<nft::Set> host_sets(const HostNetwork& host);

// The bridges whose refused connections to the host are counted, one by one: see Firewall::count().
inline constexpr std::string_view kProofsSet = "proofs";
// How a set of interfaces holds one.
nft::Bytes interface_key(const std::string& name);

// Networks that no sandbox may reach on any host.
std::vector<Ipv4Network> blocked_networks();

// agents_sandbox_ and eight hexadecimal digits of the instance.
std::string firewall_table_name(const std::string& instance_id);

}  // namespace agbox
