// SPDX-License-Identifier: Apache-2.0
#include "isolation/netlink/routing.h"

#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <set>
#include <utility>

#include "isolation/netlink/netlink_attributes.h"
#include "isolation/nft/ruleset.h"
#include "model/reasons.h"

namespace agbox {
namespace {

constexpr int kRoutingReadAttempts = 50;

bool leads_to_internet(const Ipv4Network& destination) {
  return destination.prefix_length <= 1;
}

bool contains(const Ipv4Network& outer, const Ipv4Network& inner) {
  return outer.address <= inner.address && inner.last() <= outer.last();
}

// Empty if the interface is gone.
std::string name_of(const Routing& routing, unsigned interface) {
  const auto found = routing.interface_names.find(interface);
  return found == routing.interface_names.end() ? std::string{} : found->second;
}

// --- kernel messages -----------------------------------------------------------------------

std::optional<std::uint32_t> number_in(const nlattr* attribute) {
  if (mnl_attr_validate(attribute, MNL_TYPE_U32) < 0) return std::nullopt;
  return mnl_attr_get_u32(attribute);
}

std::optional<Ipv4Address> address_in(const nlattr* attribute) {
  if (mnl_attr_get_payload_len(attribute) != 4) return std::nullopt;
  const auto* bytes = static_cast<const std::uint8_t*>(mnl_attr_get_payload(attribute));
  return Ipv4Address{std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
                     std::uint32_t{bytes[2]} << 8 | std::uint32_t{bytes[3]}};
}

Ipv4Network network_of(Ipv4Address address, unsigned prefix_length) {
  prefix_length = std::min(prefix_length, 32U);
  const std::uint32_t mask = prefix_length == 0 ? 0 : ~0U << (32U - prefix_length);
  return {.address = {address.value & mask}, .prefix_length = prefix_length};
}

bool refuses(unsigned char route_type) {
  return route_type == RTN_BLACKHOLE || route_type == RTN_UNREACHABLE || route_type == RTN_PROHIBIT;
}

bool is_gateway(std::uint16_t type) {
  return type == RTA_GATEWAY || type == RTA_VIA;
}

// The hops of a multipath route: consecutive headers, each with its own attributes.
std::vector<RouteHop> hops_in(const nlattr* multipath) {
  std::vector<RouteHop> hops;
  const auto* bytes = static_cast<const char*>(mnl_attr_get_payload(multipath));
  std::size_t left = mnl_attr_get_payload_len(multipath);
  while (left >= sizeof(rtnexthop)) {
    // The kernel aligns both headers and attributes to four bytes, as required.
    const auto* hop = reinterpret_cast<const rtnexthop*>(bytes);
    if (hop->rtnh_len < sizeof(rtnexthop) || hop->rtnh_len > left) break;
    RouteHop seen{.interface = static_cast<unsigned>(hop->rtnh_ifindex)};
    for_each_attribute(bytes + sizeof(rtnexthop), bytes + hop->rtnh_len,
                       [&](const nlattr* attribute) {
                         if (is_gateway(mnl_attr_get_type(attribute))) seen.has_gateway = true;
                       });
    hops.push_back(seen);
    const std::size_t length = std::min(static_cast<std::size_t>(RTNH_ALIGN(hop->rtnh_len)), left);
    bytes += length;
    left -= length;
  }
  return hops;
}

std::optional<Route> route_in(const nlmsghdr* message) {
  if (message->nlmsg_type != RTM_NEWROUTE) return std::nullopt;
  const auto* header = static_cast<const rtmsg*>(mnl_nlmsg_get_payload(message));
  const bool is_cached = (header->rtm_flags & RTM_F_CLONED) != 0;
  if (header->rtm_family != AF_INET || is_cached) return std::nullopt;
  if (header->rtm_type != RTN_UNICAST && !refuses(header->rtm_type)) return std::nullopt;
  Route route{.table = header->rtm_table, .destination = {}, .hops = {}};
  Ipv4Address destination;
  RouteHop only;
  for_each_attribute(message, sizeof(rtmsg), [&](const nlattr* attribute) {
    const std::uint16_t type = mnl_attr_get_type(attribute);
    if (type == RTA_DST) destination = address_in(attribute).value_or(Ipv4Address{});
    if (type == RTA_TABLE) route.table = number_in(attribute).value_or(route.table);
    if (type == RTA_OIF) only.interface = number_in(attribute).value_or(0);
    if (is_gateway(type)) only.has_gateway = true;
    if (type == RTA_MULTIPATH) route.hops = hops_in(attribute);
  });
  if (only.interface != 0) route.hops.push_back(only);
  route.destination = network_of(destination, header->rtm_dst_len);
  return route;
}

std::optional<std::uint32_t> rule_table_in(const nlmsghdr* message) {
  if (message->nlmsg_type != RTM_NEWRULE) return std::nullopt;
  const auto* header = static_cast<const fib_rule_hdr*>(mnl_nlmsg_get_payload(message));
  std::uint32_t table = header->table;
  for_each_attribute(message, sizeof(fib_rule_hdr), [&](const nlattr* attribute) {
    if (mnl_attr_get_type(attribute) == FRA_TABLE) table = number_in(attribute).value_or(table);
  });
  return table;
}

std::optional<InterfaceAddress> address_message(const nlmsghdr* message) {
  if (message->nlmsg_type != RTM_NEWADDR) return std::nullopt;
  const auto* header = static_cast<const ifaddrmsg*>(mnl_nlmsg_get_payload(message));
  std::optional<Ipv4Address> address;
  std::optional<Ipv4Address> own;
  for_each_attribute(message, sizeof(ifaddrmsg), [&](const nlattr* attribute) {
    // The peer's on a point-to-point link.
    if (mnl_attr_get_type(attribute) == IFA_ADDRESS) address = address_in(attribute);
    if (mnl_attr_get_type(attribute) == IFA_LOCAL) own = address_in(attribute);
  });
  if (!address) return std::nullopt;
  return InterfaceAddress{.interface = header->ifa_index,
                          .network = network_of(*address, header->ifa_prefixlen),
                          .own = own.value_or(*address)};
}

template <class Header>
KernelResult<> list_all(NetlinkSocket& socket, std::uint16_t type,
                        const NetlinkSocket::Take& take) {
  alignas(nlmsghdr) std::array<char, 256> bytes{};
  nlmsghdr* question = mnl_nlmsg_put_header(bytes.data());
  question->nlmsg_type = type;
  question->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  // The family is the first byte of each of these headers.
  auto* header = static_cast<std::uint8_t*>(mnl_nlmsg_put_extra_header(question, sizeof(Header)));
  header[0] = AF_INET;
  return socket.ask({bytes.data(), question->nlmsg_len}, take);
}

std::unexpected<Error> cannot_read(const KernelError& error) {
  return fail(reason::kIsolationUnavailable, "read the routes of this host: " + error.text());
}

}  // namespace

std::vector<std::string> uplinks_of(const Routing& routing, std::string_view our_bridges) {
  std::set<std::string> uplinks;
  for (const Route& route : routing.routes) {
    const bool in_use =
        std::ranges::find(routing.tables_in_use, route.table) != routing.tables_in_use.end();
    if (!in_use || !leads_to_internet(route.destination)) continue;
    for (const RouteHop& hop : route.hops) {
      const std::string name = name_of(routing, hop.interface);
      if (!name.empty() && !name.starts_with(our_bridges)) uplinks.insert(name);
    }
  }
  return {uplinks.begin(), uplinks.end()};
}

std::vector<Ipv4Network> on_link_networks_of(const Routing& routing, std::string_view our_bridges) {
  const std::vector<Ipv4Network> blocked = blocked_networks();
  std::set<Ipv4Network> networks;
  const auto add = [&](const Ipv4Network& network, unsigned interface) {
    const bool is_blocked = std::ranges::any_of(
        blocked, [&](const Ipv4Network& outer) { return contains(outer, network); });
    const bool is_ours = name_of(routing, interface).starts_with(our_bridges);
    if (!is_blocked && !is_ours && !leads_to_internet(network)) networks.insert(network);
  };
  for (const Route& route : routing.routes) {
    for (const RouteHop& hop : route.hops) {
      if (!hop.has_gateway) add(route.destination, hop.interface);
    }
  }
  for (const InterfaceAddress& address : routing.addresses) {
    add(address.network, address.interface);
  }
  return {networks.begin(), networks.end()};
}

std::vector<Ipv4Network> networks_in_use(const Routing& routing, std::string_view our_bridges) {
  // A removed interface has taken its routes and addresses with it.
  const auto is_foreign = [&](unsigned interface) {
    const std::string name = name_of(routing, interface);
    return !name.empty() && !name.starts_with(our_bridges);
  };
  std::set<Ipv4Network> networks;
  for (const Route& route : routing.routes) {
    if (leads_to_internet(route.destination)) continue;
    const bool counts =
        route.hops.empty() || std::ranges::any_of(route.hops, is_foreign, &RouteHop::interface);
    if (counts) networks.insert(route.destination);
  }
  for (const InterfaceAddress& address : routing.addresses) {
    if (is_foreign(address.interface)) networks.insert({address.own, 32});
  }
  return {networks.begin(), networks.end()};
}

Result<RoutingReader> RoutingReader::open() {
  auto socket = NetlinkSocket::open(NETLINK_ROUTE);
  if (!socket) return cannot_read(socket.error());
  return RoutingReader(std::move(*socket));
}

Result<Routing> RoutingReader::read() {
  for (int attempt = 0; attempt < kRoutingReadAttempts; ++attempt) {
    auto routing = read_once();
    if (routing) return std::move(*routing);
    if (routing.error().number != EINTR) return cannot_read(routing.error());
  }
  return fail(reason::kIsolationUnavailable,
              "read the routes of this host: they changed during each of " +
                  std::to_string(kRoutingReadAttempts) +
                  " attempts; find what changes them with: ip monitor route");
}

KernelResult<Routing> RoutingReader::read_once() {
  Routing routing;
  auto listed = list_all<rtmsg>(socket_, RTM_GETROUTE, [&](const nlmsghdr* message) {
    if (auto route = route_in(message)) routing.routes.push_back(std::move(*route));
  });
  if (!listed) return std::unexpected(listed.error());
  listed = list_all<fib_rule_hdr>(socket_, RTM_GETRULE, [&](const nlmsghdr* message) {
    if (const auto table = rule_table_in(message)) routing.tables_in_use.push_back(*table);
  });
  if (!listed) return std::unexpected(listed.error());
  listed = list_all<ifaddrmsg>(socket_, RTM_GETADDR, [&](const nlmsghdr* message) {
    if (const auto address = address_message(message)) routing.addresses.push_back(*address);
  });
  if (!listed) return std::unexpected(listed.error());

  std::set<unsigned> interfaces;
  for (const InterfaceAddress& address : routing.addresses) interfaces.insert(address.interface);
  for (const Route& route : routing.routes) {
    for (const RouteHop& hop : route.hops) interfaces.insert(hop.interface);
  }
  for (const unsigned interface : interfaces) {
    std::array<char, IF_NAMESIZE> name{};
    if (::if_indextoname(interface, name.data()) != nullptr) {
      routing.interface_names[interface] = name.data();
    }
  }
  return routing;
}

Result<std::vector<Ipv4Network>> read_networks_in_use(std::string_view our_bridges) {
  AGBOX_TRY(reader, RoutingReader::open());
  AGBOX_TRY(routing, reader.read());
  return networks_in_use(routing, our_bridges);
}

}  // namespace agbox
