// SPDX-License-Identifier: Apache-2.0
#include "isolation/netlink/routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t kMain = 254;
constexpr char kOurs[] = "agbxtest";
constexpr unsigned kLan = 2, kVpn = 3, kBridge = 4, kOtherDaemon = 5, kGone = 9;

Routing some_routing() {
  return {.routes = {},
          .tables_in_use = {255, kMain, 253},
          .addresses = {},
          .interface_names = {{kLan, "lan0"},
                              {kVpn, "wg0"},
                              {kBridge, "agbxtest1234567"},
                              {kOtherDaemon, "agbxothr1234567"}}};
}

Route route(const char* destination, std::vector<RouteHop> hops, std::uint32_t table = kMain) {
  return {.table = table,
          .destination = parse_ipv4_network(destination).value(),
          .hops = std::move(hops)};
}

std::vector<std::string> texts(const std::vector<Ipv4Network>& networks) {
  std::vector<std::string> shown;
  for (const Ipv4Network& network : networks) shown.push_back(network.text());
  return shown;
}

TEST(Uplinks, AreTheInterfacesOfDefaultRoutes) {
  Routing routing = some_routing();
  routing.routes = {route("0.0.0.0/0", {{kLan, true}}), route("10.8.0.0/24", {{kVpn, false}})};
  EXPECT_THAT(uplinks_of(routing, kOurs), ElementsAre("lan0"));
}

TEST(Uplinks, AVpnWithTwoHalvesIsOne) {
  Routing routing = some_routing();
  routing.routes = {route("0.0.0.0/0", {{kLan, true}}), route("0.0.0.0/1", {{kVpn, false}}),
                    route("128.0.0.0/1", {{kVpn, false}})};
  EXPECT_THAT(uplinks_of(routing, kOurs), ElementsAre("lan0", "wg0"));
}

TEST(Uplinks, AreAllHopsOfAMultipathRoute) {
  Routing routing = some_routing();
  routing.routes = {route("0.0.0.0/0", {{kLan, true}, {kVpn, true}})};
  EXPECT_THAT(uplinks_of(routing, kOurs), ElementsAre("lan0", "wg0"));
}

TEST(Uplinks, OnlyOfTablesReferencedByARule) {
  Routing routing = some_routing();
  routing.routes = {route("0.0.0.0/0", {{kVpn, false}}, 51820)};
  EXPECT_THAT(uplinks_of(routing, kOurs), IsEmpty());
  routing.tables_in_use.push_back(51820);
  EXPECT_THAT(uplinks_of(routing, kOurs), ElementsAre("wg0"));
}

TEST(Uplinks, AreNeverOurBridgesOrRemovedInterfaces) {
  Routing routing = some_routing();
  routing.routes = {route("0.0.0.0/0", {{kBridge, true}, {kGone, true}})};
  EXPECT_THAT(uplinks_of(routing, kOurs), IsEmpty());
}

TEST(OnLinkNetworks, AreReachedWithoutARouter) {
  Routing routing = some_routing();
  routing.routes = {route("203.0.113.0/24", {{kLan, false}}), route("8.8.8.0/24", {{kLan, true}}),
                    route("9.9.9.0/24", {{kLan, true}, {kVpn, false}}, 77)};
  routing.addresses = {{kLan, parse_ipv4_network("198.51.100.0/25").value()}};
  EXPECT_THAT(texts(on_link_networks_of(routing, kOurs)),
              ElementsAre("9.9.9.0/24", "198.51.100.0/25", "203.0.113.0/24"));
}

TEST(OnLinkNetworks, ExcludeBlockedNetworksAndOurOwn) {
  Routing routing = some_routing();
  routing.routes = {route("192.168.77.0/24", {{kLan, false}}), route("0.0.0.0/0", {{kVpn, false}}),
                    route("128.0.0.0/1", {{kVpn, false}}),
                    route("203.0.113.16/28", {{kBridge, false}})};
  EXPECT_THAT(on_link_networks_of(routing, kOurs), IsEmpty());
  routing.routes.push_back(route("203.0.113.32/28", {{kOtherDaemon, false}}));
  EXPECT_THAT(texts(on_link_networks_of(routing, kOurs)), ElementsAre("203.0.113.32/28"));
}

TEST(NetworksInUse, AreTheDestinationsOfEveryTableAndTheHostsAddresses) {
  Routing routing = some_routing();
  routing.routes = {route("192.168.77.0/24", {{kLan, false}}), route("10.8.0.0/24", {{kLan, true}}),
                    route("10.201.7.0/24", {{kVpn, false}}, 51820), route("10.9.0.0/16", {}, 77)};
  routing.addresses = {{kLan, parse_ipv4_network("192.168.77.0/24").value(),
                        parse_ipv4_address("192.168.77.1").value()}};
  EXPECT_THAT(texts(networks_in_use(routing, kOurs)),
              ElementsAre("10.8.0.0/24", "10.9.0.0/16", "10.201.7.0/24", "192.168.77.0/24",
                          "192.168.77.1/32"));
}

TEST(NetworksInUse, ExcludeDefaultRoutesOurOwnAndRemovedInterfaces) {
  Routing routing = some_routing();
  routing.routes = {
      route("0.0.0.0/0", {{kLan, true}}),         route("0.0.0.0/1", {{kVpn, false}}),
      route("128.0.0.0/1", {{kVpn, false}}),      route("0.0.0.0/0", {}, 77),
      route("10.201.0.0/28", {{kBridge, false}}), route("10.201.1.0/28", {{kGone, false}})};
  routing.addresses = {{kBridge, parse_ipv4_network("10.201.0.0/28").value(),
                        parse_ipv4_address("10.201.0.1").value()}};
  EXPECT_THAT(networks_in_use(routing, kOurs), IsEmpty());
}

}  // namespace
}  // namespace agbox
