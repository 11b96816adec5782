// SPDX-License-Identifier: Apache-2.0
// What of this host's routing the rules depend on: which interfaces lead to the internet, and which
// networks are next door. The judgement is pure; reading is one question per list to the kernel.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "isolation/netlink_socket.h"
#include "model/ipv4.h"

namespace agbox {

struct RouteHop {
  unsigned interface = 0;  // its index
  bool has_gateway = false;
};

struct Route {
  std::uint32_t table = 0;
  Ipv4Network destination;
  std::vector<RouteHop> hops;
};

struct InterfaceAddress {
  unsigned interface = 0;
  Ipv4Network network;
  Ipv4Address own{};  // this host's in it
};

// What the kernel shows; only unicast routes of IPv4.
struct Routing {
  std::vector<Route> routes;
  std::vector<std::uint32_t> tables_in_use;  // those that a routing rule names
  std::vector<InterfaceAddress> addresses;
  std::map<unsigned, std::string> interface_names;
};

// The interfaces of default routes and of the two halves that VPNs use instead, sorted. Those whose
// name begins with `our_bridges` are none.
std::vector<std::string> uplinks_of(const Routing& routing, std::string_view our_bridges);

// Networks that are reached without a router, sorted, but for those that no sandbox may reach on
// any host and those of our own bridges.
std::vector<Ipv4Network> on_link_networks_of(const Routing& routing, std::string_view our_bridges);

class RoutingReader {
 public:
  static Result<RoutingReader> open();
  Result<Routing> read();

 private:
  explicit RoutingReader(NetlinkSocket socket) : socket_(std::move(socket)) {}
  KernelResult<Routing> read_once();
  NetlinkSocket socket_;
};

}  // namespace agbox
