// SPDX-License-Identifier: Apache-2.0
// Whether the rules hold one sandbox: judgements over what the kernel shows of its bridge, and over
// what came of a connection that the sandbox itself tried.
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
  bool exists = false;  // in our own network namespace
  std::vector<Ipv4Network> networks;
  std::optional<Ipv4Address> gateway{};  // the host's own address on it
};

struct BridgeWanted {
  std::string prefix;  // of every bridge of this instance
  Ipv4Network address_pool;
};

BridgeSeen look_at_bridge(const std::string& name, const Routing& routing);

// The rules match bridges by prefix and addresses by pool: is this bridge one that they match?
Result<> check_bridge(const BridgeWanted& wanted, const BridgeSeen& seen);

// The host's own address on it, which the sandbox must not reach.
Result<Ipv4Address> gateway_of(const BridgeSeen& seen);

// A connection from inside to a listener on the host, seen from all sides. A reset alone shows
// little: a listener that is dead, and anybody else's firewall, answer with one too.
struct ProbeSeen {
  Ipv4Address address;          // of the listener
  ProbeReport inside;           // what the sandbox's guest tells
  bool listener_answers;        // to the daemon itself, at the same moment
  bool listener_was_reached;    // by anybody but the daemon
  std::uint64_t refused_by_us;  // packets of this bridge that our rules have refused meanwhile
};
Result<> judge_probe(const ProbeSeen& seen);

}  // namespace agbox
