// SPDX-License-Identifier: Apache-2.0
#include "isolation/sandbox_proof.h"

#include <net/if.h>

namespace agbox {
namespace {

std::unexpected<Error> not_isolated(const BridgeSeen& seen, const std::string& why) {
  return fail(Reason::Internal, "the sandbox's bridge '" + seen.name + "' is not isolated: " + why);
}

}  // namespace

BridgeSeen look_at_bridge(const std::string& name, const Routing& routing) {
  const unsigned index = ::if_nametoindex(name.c_str());
  BridgeSeen seen{.name = name, .exists = index != 0, .networks = {}};
  for (const InterfaceAddress& address : routing.addresses) {
    if (index != 0 && address.interface == index) seen.networks.push_back(address.network);
  }
  return seen;
}

Result<> check_bridge(const BridgeWanted& wanted, const BridgeSeen& seen) {
  if (!seen.name.starts_with(wanted.prefix)) {
    return not_isolated(
        seen, "its name does not begin with '" + wanted.prefix + "', and no rule is for it");
  }
  if (!seen.exists) {
    return not_isolated(seen,
                        "it is not in the daemon's network namespace, where the rules are; run the "
                        "daemon and the container engine in the same one");
  }
  for (const Ipv4Network& network : seen.networks) {
    const bool inside = wanted.address_pool.address <= network.address &&
                        network.last() <= wanted.address_pool.last();
    if (!inside) {
      return not_isolated(seen, "it has addresses of " + network.text() +
                                    ", which are not of network.address_pool " +
                                    wanted.address_pool.text());
    }
  }
  return {};
}

}  // namespace agbox
