// SPDX-License-Identifier: Apache-2.0
// The rules that isolate all sandboxes of one instance from the host, the local network and each
// other: tables, chains and sets with their content. Pure; docs/isolation_and_security.md explains
// each part. Rules match bridges by name prefix, not by sandbox, so a network never exists before
// its rules.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "isolation/nft/nft_table.h"
#include "model/network/ipv4.h"

namespace agbox {

// The host-dependent part, which changes at run time.
struct HostNetwork {
  std::vector<std::string> uplinks;    // the only interfaces to the internet
  std::vector<Ipv4Network> on_link;    // neighbours outside of the private networks
  std::vector<Ipv4Address> resolvers;  // reachable on port 53, wherever they are
  bool operator==(const HostNetwork&) const = default;
};

struct RulesetOptions {
  std::string instance_id;
  Ipv4Network address_pool;
  // Whether the kernel can keep owned tables after their owner's end.
  bool persist = true;
  // Whether it can track connections of sandboxes by timeouts of their own.
  bool timeouts = true;
};

struct Ruleset {
  // Survive the daemon's end; any process that may change the firewall can modify them.
  std::vector<nft::Table> plain;
  // The same rules again, which only the daemon can modify while it runs.
  std::vector<nft::Table> owned;
};

Ruleset make_ruleset(const RulesetOptions& options, const HostNetwork& host);

// The host-dependent sets of every table with sets.
std::vector<nft::Set> host_sets(const HostNetwork& host);

// Bridges whose refused connections to the host are counted: see Firewall::begin_count().
inline constexpr std::string_view kProofsSet = "proofs";
// The key of an interface in a set.
nft::Bytes interface_key(const std::string& name);

// Networks that no sandbox may reach on any host.
std::vector<Ipv4Network> blocked_networks();

// agents_sandbox_, the ID of the user that this process runs as, and eight hexadecimal digits of
// the instance ID.
std::string firewall_table_name(const std::string& instance_id);

}  // namespace agbox
