// SPDX-License-Identifier: Apache-2.0
// The part of this host's routing on which the rules and sandbox networks depend: uplinks to the
// internet, on-link networks, and networks in use. Evaluation is pure; reading takes one request
// per list.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "isolation/netlink/netlink_socket.h"
#include "model/network/ipv4.h"

namespace agbox {

struct RouteHop {
  unsigned interface = 0;  // its index
  bool has_gateway = false;
};

struct Route {
  std::uint32_t table = 0;
  Ipv4Network destination;
  std::vector<RouteHop> hops;  // empty: the route rejects or drops packets
};

struct InterfaceAddress {
  unsigned interface = 0;
  Ipv4Network network;
  Ipv4Address own{};  // this host's
};

// The IPv4 routes of every routing table, without those to local and broadcast addresses.
struct Routing {
  std::vector<Route> routes;
  std::vector<std::uint32_t> tables_in_use;  // referenced by a routing rule
  std::vector<InterfaceAddress> addresses;
  std::map<unsigned, std::string> interface_names;
};

// The interfaces of default routes and of the two half-routes that VPNs use instead, sorted;
// without interfaces whose name begins with `our_bridges`.
std::vector<std::string> uplinks_of(const Routing& routing, std::string_view our_bridges);

// Networks reached without a router, sorted; without those blocked on every host and those of our
// bridges.
std::vector<Ipv4Network> on_link_networks_of(const Routing& routing, std::string_view our_bridges);

// Networks that a sandbox network must not overlap: destinations of all routing tables, whether a
// rule references them or not, and the host's own addresses; sorted. Without default routes,
// half-routes and interfaces whose name begins with `our_bridges`.
std::vector<Ipv4Network> networks_in_use(const Routing& routing, std::string_view our_bridges);

class RoutingReader {
 public:
  static Result<RoutingReader> open();
  Result<Routing> read();

 private:
  explicit RoutingReader(NetlinkSocket socket) : socket_(std::move(socket)) {}
  KernelResult<Routing> read_once();
  NetlinkSocket socket_;
};

Result<std::vector<Ipv4Network>> read_networks_in_use(std::string_view our_bridges);

}  // namespace agbox
