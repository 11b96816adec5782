// SPDX-License-Identifier: Apache-2.0
#include "isolation/sandbox_verification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(SandboxVerification, ABridgeOfOursInThePoolPasses) {
  EXPECT_EQ(why_not(bridge({parse_ipv4_network("10.213.0.16/28").value()})), "isolated");
  EXPECT_EQ(why_not(bridge()), "isolated");
}

TEST(SandboxVerification, ABridgeThatNoRuleMatchesFails) {
  BridgeSeen seen = bridge();
  seen.name = "docker0";
  EXPECT_THAT(why_not(seen), HasSubstr("'docker0' is not isolated: its name does not begin with "
                                       "'agbxtest'"));
}

TEST(SandboxVerification, ABridgeInAnotherNamespaceFails) {
  BridgeSeen seen = bridge();
  seen.exists = false;
  EXPECT_THAT(why_not(seen), HasSubstr("not in the daemon's network namespace"));
}

TEST(SandboxVerification, AddressesOutsideThePoolFail) {
  EXPECT_THAT(why_not(bridge({parse_ipv4_network("10.214.0.0/28").value()})),
              HasSubstr("an address of 10.214.0.0/28, which is not within network.address_pool "
                        "10.213.0.0/16"));
  // A network around the pool is not in it either.
  EXPECT_THAT(why_not(bridge({parse_ipv4_network("10.0.0.0/8").value()})), HasSubstr("10.0.0.0/8"));
}

TEST(SandboxVerification, ABridgeWithoutAHostAddressFails) {
  BridgeSeen seen = bridge();
  EXPECT_THAT(gateway_of(seen).error().message(), HasSubstr("no address of this host"));
  seen.gateway = parse_ipv4_address("10.213.0.17").value();
  EXPECT_EQ(gateway_of(seen).value().text(), "10.213.0.17");
}

TEST(SandboxVerification, AllAddressesOfTheHostAreSeen) {
  Routing routing;
  const Ipv4Address own = parse_ipv4_address("10.213.0.18").value();
  routing.addresses = {
      {.interface = 4711, .network = parse_ipv4_network("10.213.0.16/28").value(), .own = own}};
  EXPECT_EQ(inspect_bridge("agbxtest1234567", routing).host_addresses, std::vector{own});
}

ProbeSeen refused_as_it_should_be() {
  return {.address = parse_ipv4_address("10.213.0.17").value(),
          .inside = {.outcome = ProbeReport::Outcome::Refused},
          .listener_answers = true,
          .listener_was_reached = false,
          .refused_by_us = 1};
}

std::string judged(const ProbeSeen& seen) {
  const auto proven = judge_probe(seen);
  return proven ? "proven" : proven.error().message();
}

TEST(ProbeFromInside, ARefusalByOurRulesWithALiveListenerPasses) {
  EXPECT_EQ(judged(refused_as_it_should_be()), "proven");
}

TEST(ProbeFromInside, AReachedListenerFailsWhicheverSideReportsIt) {
  ProbeSeen seen = refused_as_it_should_be();
  seen.inside.outcome = ProbeReport::Outcome::Connected;
  EXPECT_THAT(judged(seen), HasSubstr("is not isolated: a connection from the sandbox to "
                                      "10.213.0.17 of this host was not refused"));
  seen = refused_as_it_should_be();
  seen.listener_was_reached = true;
  EXPECT_THAT(judged(seen), HasSubstr("is not isolated"));
}

TEST(ProbeFromInside, ATimeoutFails) {
  ProbeSeen seen = refused_as_it_should_be();
  seen.inside = {.outcome = ProbeReport::Outcome::Unknown, .detail = "no answer came in time"};
  EXPECT_THAT(judged(seen), HasSubstr("could not be verified"));
  EXPECT_THAT(judged(seen), HasSubstr("no answer came in time"));
}

TEST(ProbeFromInside, ARefusalThatMayHaveAnotherCauseFails) {
  ProbeSeen seen = refused_as_it_should_be();
  seen.listener_answers = false;
  EXPECT_THAT(judged(seen), HasSubstr("does not answer the daemon either"));
  seen = refused_as_it_should_be();
  seen.refused_by_us = 0;
  EXPECT_THAT(judged(seen), HasSubstr("not by the sandbox firewall"));
}

}  // namespace
}  // namespace agbox
