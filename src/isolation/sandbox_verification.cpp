// SPDX-License-Identifier: Apache-2.0
#include "isolation/sandbox_verification.h"

#include <net/if.h>

#include "model/reasons.h"

namespace agbox {
namespace {

std::unexpected<Error> not_isolated(const BridgeSeen& seen, const std::string& why) {
  return fail(reason::kIsolationUnavailable,
              "the sandbox's bridge '" + seen.name + "' is not isolated: " + why);
}

}  // namespace

BridgeSeen inspect_bridge(const std::string& name, const Routing& routing) {
  const unsigned index = ::if_nametoindex(name.c_str());
  BridgeSeen seen{.name = name, .exists = index != 0, .networks = {}};
  for (const InterfaceAddress& address : routing.addresses) {
    seen.host_addresses.push_back(address.own);
    if (index == 0 || address.interface != index) continue;
    seen.networks.push_back(address.network);
    if (!seen.gateway) seen.gateway = address.own;
  }
  return seen;
}

Result<> check_bridge(const BridgeWanted& wanted, const BridgeSeen& seen) {
  if (!seen.name.starts_with(wanted.prefix)) {
    return not_isolated(
        seen, "its name does not begin with '" + wanted.prefix + "', so no rule matches it");
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
      return not_isolated(seen, "it has an address of " + network.text() +
                                    ", which is not within network.address_pool " +
                                    wanted.address_pool.text());
    }
  }
  return {};
}

Result<Ipv4Address> gateway_of(const BridgeSeen& seen) {
  if (seen.gateway) return *seen.gateway;
  return not_isolated(
      seen, "it has no address of this host, so no connection can be attempted from inside");
}

Result<> judge_probe(const ProbeSeen& seen) {
  const std::string connection =
      "a connection from the sandbox to " + seen.address.text() + " of this host";
  if (seen.inside.outcome == ProbeReport::Outcome::Connected || seen.listener_was_reached) {
    return fail(reason::kIsolationUnavailable,
                "the sandbox is not isolated: " + connection +
                    " was not refused; find the rule that accepts it with: nft list ruleset");
  }
  const std::string unverified = "the isolation of the sandbox could not be verified: ";
  if (seen.inside.outcome == ProbeReport::Outcome::Unknown) {
    return fail(reason::kIsolationUnavailable,
                unverified + connection + " was not refused as expected: " + seen.inside.detail +
                    "; check whether another firewall drops it first: nft list ruleset");
  }
  if (!seen.listener_answers) {
    return fail(reason::kIsolationUnavailable,
                unverified + "the daemon's own listener on " + seen.address.text() +
                    " does not answer the daemon either, so a refusal means "
                    "nothing; check: nft list ruleset");
  }
  if (seen.refused_by_us == 0) {
    return fail(reason::kIsolationUnavailable,
                unverified + connection +
                    " was refused, but not by the sandbox firewall; another "
                    "firewall answers first, check: nft list ruleset");
  }
  return {};
}

}  // namespace agbox
