// SPDX-License-Identifier: Apache-2.0
// Pure checks of one sandbox's isolation: of the kernel's view of its bridge, and of the outcome of
// a connection attempt from inside.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/netlink/routing.h"
#include "model/network/ipv4.h"
#include "model/network/network_probe.h"

namespace agbox {

struct BridgeSeen {
  std::string name;
  bool exists = false;  // in our network namespace
  std::vector<Ipv4Network> networks;
  std::optional<Ipv4Address> gateway{};  // the host's address on it
  // Of every interface: what is in a network of the bridge, and none of these, is in the sandbox.
  std::vector<Ipv4Address> host_addresses{};
};

struct BridgeWanted {
  std::string prefix;  // of every bridge of this instance
  Ipv4Network address_pool;
};

BridgeSeen inspect_bridge(const std::string& name, const Routing& routing);

// The rules match bridges by prefix and addresses by pool: do they match this bridge?
Result<> check_bridge(const BridgeWanted& wanted, const BridgeSeen& seen);

// The host's address on it, which the sandbox must not reach.
Result<Ipv4Address> gateway_of(const BridgeSeen& seen);

// A connection attempt from inside to a listener on the host, seen from all sides. A reset alone
// shows little: a dead listener, or any other firewall, causes one too.
struct ProbeSeen {
  Ipv4Address address;          // of the listener
  ProbeReport inside;           // reported by the sandbox's guest
  bool listener_answers;        // to the daemon itself, at the same moment
  bool listener_was_reached;    // from an address of the sandbox's network
  std::uint64_t refused_by_us;  // packets of this bridge that our rules have refused
};
Result<> judge_probe(const ProbeSeen& seen);

}  // namespace agbox
