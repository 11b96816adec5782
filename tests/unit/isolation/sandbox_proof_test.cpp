// SPDX-License-Identifier: Apache-2.0
#include "isolation/sandbox_proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "isolation/packet_filter.h"

namespace agbox {
namespace {

using testing::HasSubstr;

BridgeWanted wanted() {
  return {.prefix = "agbxtest", .address_pool = parse_ipv4_network("10.213.0.0/16").value()};
}

BridgeSeen bridge(std::vector<Ipv4Network> networks = {}) {
  return {.name = "agbxtest1234567", .exists = true, .networks = std::move(networks)};
}

std::string why_not(const BridgeSeen& seen) {
  const auto checked = check_bridge(wanted(), seen);
  return checked ? "isolated" : checked.error().message();
}

TEST(SandboxProof, ABridgeOfOursInThePoolPasses) {
  EXPECT_EQ(why_not(bridge({parse_ipv4_network("10.213.0.16/28").value()})), "isolated");
  EXPECT_EQ(why_not(bridge()), "isolated");
}

TEST(SandboxProof, ABridgeThatNoRuleMatchesDoesNot) {
  BridgeSeen seen = bridge();
  seen.name = "docker0";
  EXPECT_THAT(why_not(seen), HasSubstr("'docker0' is not isolated: its name does not begin with "
                                       "'agbxtest'"));
}

TEST(SandboxProof, ABridgeInAnotherNamespaceDoesNot) {
  BridgeSeen seen = bridge();
  seen.exists = false;
  EXPECT_THAT(why_not(seen), HasSubstr("not in the daemon's network namespace"));
}

TEST(SandboxProof, AddressesOutsideThePoolDoNot) {
  EXPECT_THAT(why_not(bridge({parse_ipv4_network("10.214.0.0/28").value()})),
              HasSubstr("addresses of 10.214.0.0/28, which are not of network.address_pool "
                        "10.213.0.0/16"));
  // A network around the pool is not in it either.
  EXPECT_THAT(why_not(bridge({parse_ipv4_network("10.0.0.0/8").value()})), HasSubstr("10.0.0.0/8"));
}

TEST(FirewallRefusal, NamesTheCapabilityOnlyWhereItIsMissing) {
  EXPECT_EQ(nft::explain_refusal("", {.number = EPERM, .words = {}, .sequence = 0}),
            "the firewall of the sandboxes: change nftables: Operation not permitted; the daemon "
            "needs CAP_NET_ADMIN: sudo setcap cap_net_admin+ep $(which agboxd)");
  EXPECT_EQ(
      nft::explain_refusal("delete table inet x", {.number = EPERM, .words = {}, .sequence = 1}),
      "the firewall of the sandboxes: delete table inet x: Operation not permitted; another "
      "process owns the table: end it, or restart it without the owner flag");
}

TEST(FirewallRefusal, NamesTheModulesWhereTheKernelKnowsNoSuchThing) {
  EXPECT_EQ(nft::explain_refusal("add rule 3 to chain pre_raw of table inet x",
                                 {.number = ENOENT, .words = "Unknown expression", .sequence = 9}),
            "the firewall of the sandboxes: add rule 3 to chain pre_raw of table inet x: Unknown "
            "expression; this kernel seems to lack a part of nftables, try: sudo modprobe -a "
            "nf_tables nft_ct nft_fib_inet nft_reject_inet nft_connlimit");
}

}  // namespace
}  // namespace agbox
