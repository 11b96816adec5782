// SPDX-License-Identifier: Apache-2.0
// Whether the rules hold one sandbox: a judgement over what the kernel shows. It needs nothing from
// inside the sandbox; that its packets really are refused is another proof, which the guest takes
// part in.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/routing.h"
#include "model/ipv4.h"

namespace agbox {

struct BridgeSeen {
  std::string name;
  bool exists = false;  // in our own network namespace
  std::vector<Ipv4Network> networks;
};

struct BridgeWanted {
  std::string prefix;  // of every bridge of this instance
  Ipv4Network address_pool;
};

BridgeSeen look_at_bridge(const std::string& name, const Routing& routing);

// The rules match bridges by prefix and addresses by pool: is this bridge one that they match?
Result<> check_bridge(const BridgeWanted& wanted, const BridgeSeen& seen);

}  // namespace agbox
