// SPDX-License-Identifier: Apache-2.0
// What of this host's routing the rules and the networks of sandboxes depend on: which interfaces
// lead to the internet, which networks are next door, and which are in use. The judgement is pure;
// reading is one question per list to the kernel.
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
  std::vector<RouteHop> hops;  // none: it refuses or drops packets
};

struct InterfaceAddress {
  unsigned interface = 0;
  Ipv4Network network;
  Ipv4Address own{};  // this host's in it
};

// What the kernel shows of IPv4, of every routing table. Routes to the host's own addresses and to
// broadcast addresses are left out.
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

// Networks that a network of a sandbox must not overlap: what any routing table has a route to,
// whether a rule names the table today or not, and the host's own addresses; sorted. Default routes
// and the two halves are left out, as are interfaces whose name begins with `our_bridges`.
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

// As they are now.
Result<std::vector<Ipv4Network>> read_networks_in_use(std::string_view our_bridges);

}  // namespace agbox
