// SPDX-License-Identifier: Apache-2.0
#include "isolation/nft/ruleset.h"

#include <linux/if_packet.h>
#include <net/if.h>

#include <algorithm>
#include <utility>

#include "isolation/nft/netfilter.h"
#include "isolation/nft/nft_objects.h"
#include "isolation/nft/rule_parts.h"
#include "model/object_names.h"

namespace agbox::nft {
namespace {

// nft's numbers of key types; needed to print the set.
constexpr std::uint32_t kTypeIpv4Address = 7;
constexpr std::uint32_t kTypeInterfaceName = 41;

// The host's connection table is shared, so what a sandbox can have in it is limited. Connections
// count until they have ended. The kernel keeps ended ones of TCP for a while, so their number is
// limited by a rate; its burst covers what package managers and clones open at once.
constexpr std::uint32_t kConnectionBudget = 8192;
constexpr std::uint64_t kTcpConnectionsPerSecond = 200;
constexpr std::uint32_t kTcpConnectionBurst = 4096;
constexpr std::uint32_t kEndedSeconds = 5;
constexpr char kTcpTimeouts[] = "tcp_timeouts";

constexpr std::uint8_t kTcp = IPPROTO_TCP;
constexpr std::uint8_t kUdp = IPPROTO_UDP;
constexpr std::uint16_t kDnsPort = 53;

// Between connection tracking (-200) and Docker's destination NAT (-100), where the destination is
// still the original one.
constexpr std::int32_t kBeforeNat = -150;
constexpr std::int32_t kRaw = -300;
constexpr std::int32_t kBeforeFilter = -10;

std::vector<Rule> dns_to_resolvers(const Rule& verdict) {
  const Rule to_resolver = destination_in("resolvers");
  return {to_resolver + protocol(kUdp) + destination_port(kDnsPort) + verdict,
          to_resolver + protocol(kTcp) + destination_port(kDnsPort) + verdict};
}

void append(std::vector<Rule>& rules, const std::vector<Rule>& more) {
  rules.insert(rules.end(), more.begin(), more.end());
}

// --- chains -------------------------------------------------------------------------------

// TCP with a reset, so that clients fail immediately; a drop would make them wait.
Chain refuse_chain() {
  return {.name = "refuse",
          .hook = {},
          .rules = {protocol(kTcp) + Rule{Count{}, Reject{.type = NFT_REJECT_TCP_RST, .code = 0}},
                    reject_unreachable()}};
}

// Whatever passes, and once: a connection that comes here twice may count twice. Over the rate it
// is dropped: clients try again after a second and are slowed down, not failed.
Chain admit_chain(bool with_budget, bool with_timeouts) {
  Chain chain{.name = "admit", .hook = {}, .rules = {}};
  if (with_budget) {
    const Rule bridge{LoadMeta{NFT_META_IIFNAME}};
    chain.rules = {connection_state(state_bit(IP_CT_ESTABLISHED)) + accept(),
                   protocol(kTcp) + bridge +
                       Rule{OverRate{.set = "rate",
                                     .per_second = kTcpConnectionsPerSecond,
                                     .burst = kTcpConnectionBurst}} +
                       drop(),
                   bridge + Rule{OverBudget{.set = "budget", .connections = kConnectionBudget}} +
                       reject_unreachable()};
    if (with_timeouts) chain.rules.push_back(protocol(kTcp) + Rule{UseTimeouts{kTcpTimeouts}});
  }
  chain.rules.push_back(accept());
  return chain;
}

// Sandboxes have no IPv6 and no addresses outside of their bridge's: such packets are forged.
Chain pre_raw_chain(const std::string& prefix) {
  return {.name = "pre_raw",
          .hook = Hook{.number = NF_INET_PRE_ROUTING, .priority = kRaw},
          .rules = {from_bridge(prefix, false) + leave(), is_ipv4(false) + drop(),
                    route_exists(NFTA_FIB_F_SADDR, false) + drop()}};
}

// Related ICMP only if the connection's other end is a sandbox: with a forged "fragmentation
// needed", a sandbox could lower the host's path MTU for other connections.
Chain host_allowed_chain(const Ipv4Network& pool) {
  const std::uint32_t established = state_bit(IP_CT_ESTABLISHED);
  const std::uint32_t related = state_bit(IP_CT_RELATED);
  return {.name = "host_allowed",
          .hook = {},
          .rules = {connection_state(established) + is_reply() + accept(),
                    connection_state(related) + is_reply() + opened_towards(pool) + accept(),
                    connection_state(related | kInvalid) + drop()}};
}

// What is refused is counted per element for bridges under verification. What passes comes by
// input.
Chain to_host_chain() {
  Chain chain{.name = "to_host", .hook = {}, .rules = {jump_to("host_allowed")}};
  append(chain.rules, dns_to_resolvers(accept()));
  append(
      chain.rules,
      {protocol(kTcp) + Rule{LoadMeta{NFT_META_IIFNAME}, Lookup{.set = std::string(kProofsSet)}} +
           go_to("refuse"),
       go_to("refuse")});
  return chain;
}

Chain pre_chain(const std::string& prefix) {
  return {.name = "pre",
          .hook = Hook{.number = NF_INET_PRE_ROUTING, .priority = kBeforeNat},
          .rules = {from_bridge(prefix, false) + leave(),
                    destination_is_this_host() + go_to("to_host")}};
}

// Second line of defence: packets redirected to this host by another destination NAT.
Chain input_chain(const std::string& prefix) {
  Chain chain{.name = "input",
              .hook = Hook{.number = NF_INET_LOCAL_IN, .priority = kBeforeFilter},
              .rules = {from_bridge(prefix, false) + leave(), jump_to("host_allowed")}};
  append(chain.rules, dns_to_resolvers(go_to("admit")));
  append(chain.rules, {drop()});
  return chain;
}

// With bridge-nf, bridged frames come here too: those within one bridge pass.
Chain from_sandbox_chain(const std::string& prefix) {
  const Rule to_ours = to_bridge(prefix);
  constexpr Ipv4Network kLocalMulticast{.address = {0xE0000000}, .prefix_length = 24};
  Chain chain{
      .name = "from_sandbox",
      .hook = {},
      .rules = {to_ours + route_exists(NFTA_FIB_F_DADDR, true) + accept(),
                to_ours + packet_kind(PACKET_BROADCAST) + accept(),
                to_ours + packet_kind(PACKET_MULTICAST) + destination() + within(kLocalMulticast) +
                    accept(),
                to_ours + drop(), connection_state(kInvalid) + drop(), is_reply() + drop()}};
  append(chain.rules, dns_to_resolvers(go_to("admit")));
  append(chain.rules,
         {destination_in("blocked") + go_to("refuse"), destination_in("onlink") + go_to("refuse"),
          Rule{LoadMeta{NFT_META_OIFNAME}, Lookup{.set = "uplinks", .contained = false}} +
              go_to("refuse"),
          go_to("admit")});
  return chain;
}

Chain forward_chain(const std::string& prefix) {
  const std::uint32_t answers = state_bit(IP_CT_ESTABLISHED) | state_bit(IP_CT_RELATED);
  return {.name = "forward",
          .hook = Hook{.number = NF_INET_FORWARD, .priority = kBeforeFilter},
          .rules = {from_bridge(prefix) + go_to("from_sandbox"), to_bridge(prefix, false) + leave(),
                    connection_state(answers) + is_reply() + accept(), drop()}};
}

// Ports of a sandbox are for its user, and root. Answers of other users' services are not
// concerned, nor packets without a socket, such as resets.
Chain output_chain(const std::string& prefix) {
  return {.name = "output",
          .hook = Hook{.number = NF_INET_LOCAL_OUT, .priority = kBeforeFilter},
          .rules = {to_bridge(prefix, false) + leave(), is_reply() + leave(),
                    sent_by_others_than({0, own_uid()}) + go_to("refuse")}};
}

// --- sets ---------------------------------------------------------------------------------

// Sorted and merged: the kernel refuses overlapping intervals.
std::vector<Element> interval_elements(std::vector<Ipv4Network> networks) {
  std::ranges::sort(networks);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> intervals;  // [first, end)
  for (const Ipv4Network& network : networks) {
    const std::uint64_t first = network.address.value;
    const std::uint64_t end = std::uint64_t{network.last().value} + 1;
    if (intervals.empty() || first > intervals.back().second) {
      intervals.emplace_back(first, end);
    } else {
      intervals.back().second = std::max(intervals.back().second, end);
    }
  }
  std::vector<Element> elements;
  for (const auto& [first, end] : intervals) {
    elements.push_back({.key = network_order(static_cast<std::uint32_t>(first))});
    // An interval up to the last address has no end element.
    if (end > 0xFFFFFFFF) break;
    elements.push_back(
        {.key = network_order(static_cast<std::uint32_t>(end)), .ends_interval = true});
  }
  return elements;
}

Set address_set(std::string name, std::uint32_t flags, std::vector<Element> elements) {
  return {.name = std::move(name),
          .key_type = kTypeIpv4Address,
          .key_length = 4,
          .flags = flags,
          .size = 0,
          .holds_text = false,
          .varies = false,
          .elements = std::move(elements)};
}

Set interface_set(std::string name, std::uint32_t flags, std::uint32_t size,
                  std::vector<Element> elements) {
  return {.name = std::move(name),
          .key_type = kTypeInterfaceName,
          .key_length = IFNAMSIZ,
          .flags = flags,
          .size = size,
          .holds_text = true,
          .varies = false,
          .elements = std::move(elements)};
}

template <class Value, class Key>
std::vector<Element> plain_elements(const std::vector<Value>& values, Key key) {
  std::vector<Element> elements;
  for (const Value& value : values) elements.push_back({.key = key(value)});
  std::ranges::sort(elements);
  const auto repeated = std::ranges::unique(elements);
  elements.erase(repeated.begin(), repeated.end());
  return elements;
}

// --- timeouts -----------------------------------------------------------------------------

// The kernel's defaults, but for connections that have ended.
Timeouts tcp_timeouts() {
  std::vector<std::uint32_t> seconds(NFTNL_CTTIMEOUT_TCP_MAX);
  seconds[NFTNL_CTTIMEOUT_TCP_SYN_SENT] = 120;
  seconds[NFTNL_CTTIMEOUT_TCP_SYN_RECV] = 60;
  seconds[NFTNL_CTTIMEOUT_TCP_ESTABLISHED] = 432'000;
  seconds[NFTNL_CTTIMEOUT_TCP_FIN_WAIT] = 120;
  seconds[NFTNL_CTTIMEOUT_TCP_CLOSE_WAIT] = 60;
  seconds[NFTNL_CTTIMEOUT_TCP_LAST_ACK] = 30;
  seconds[NFTNL_CTTIMEOUT_TCP_TIME_WAIT] = kEndedSeconds;
  seconds[NFTNL_CTTIMEOUT_TCP_CLOSE] = kEndedSeconds;
  seconds[NFTNL_CTTIMEOUT_TCP_SYN_SENT2] = 120;
  seconds[NFTNL_CTTIMEOUT_TCP_RETRANS] = 300;
  seconds[NFTNL_CTTIMEOUT_TCP_UNACK] = 300;
  return {.name = kTcpTimeouts,
          .kind = NFT_OBJECT_CT_TIMEOUT,
          .protocol = kTcp,
          .seconds = std::move(seconds)};
}

// --- tables -------------------------------------------------------------------------------

Table inet_table(const RulesetOptions& options, const HostNetwork& host, const std::string& name,
                 std::uint32_t flags, bool with_budget) {
  const std::string prefix = bridge_prefix(options.instance_id);
  Table table{.name = {.family = NFPROTO_INET, .name = name}, .flags = flags};
  table.sets = host_sets(host);
  table.sets.push_back(
      address_set("blocked", NFT_SET_INTERVAL, interval_elements(blocked_networks())));
  table.sets.push_back(interface_set(std::string(kProofsSet), 0, 0, {}));
  table.sets.back().varies = true;
  if (with_budget) {
    for (const char* limits : {"budget", "rate"}) {
      table.sets.push_back(interface_set(limits, NFT_SET_EVAL, 65535, {}));
      table.sets.back().varies = true;
    }
    if (options.timeouts) table.timeouts.push_back(tcp_timeouts());
  }
  table.chains = {refuse_chain(),
                  admit_chain(with_budget, options.timeouts),
                  host_allowed_chain(options.address_pool),
                  to_host_chain(),
                  from_sandbox_chain(prefix),
                  pre_raw_chain(prefix),
                  pre_chain(prefix),
                  input_chain(prefix),
                  forward_chain(prefix),
                  output_chain(prefix)};
  return table;
}

// A sandbox that could answer or send ARP for the host's addresses could discover and take over its
// neighbours.
Table arp_table(const RulesetOptions& options, const std::string& name, std::uint32_t flags) {
  const std::string prefix = bridge_prefix(options.instance_id);
  constexpr std::uint32_t kSenderAddress = 14;
  constexpr std::uint32_t kTargetAddress = 24;
  const auto outside_pool = [&](std::uint32_t offset) {
    return from_bridge(prefix) + Rule{LoadPayload{NFT_PAYLOAD_NETWORK_HEADER, offset, 4}} +
           within(options.address_pool, false) + drop();
  };
  return {.name = {.family = NFPROTO_ARP, .name = name},
          .flags = flags,
          .sets = {},
          .timeouts = {},
          .chains = {{.name = "in",
                      .hook = Hook{.number = NF_ARP_IN, .priority = 0},
                      .rules = {outside_pool(kTargetAddress), outside_pool(kSenderAddress)}}}};
}

}  // namespace
}  // namespace agbox::nft

namespace agbox {

nft::Bytes interface_key(const std::string& name) {
  nft::Bytes key = nft::text_bytes(name);
  key.resize(IFNAMSIZ);
  return key;
}

std::string firewall_table_name(const std::string& instance_id) {
  // Works for any text; for a UUID, which every instance ID is, these are the first digits.
  std::string digits;
  for (const char character : instance_id) {
    const bool is_digit =
        (character >= '0' && character <= '9') || (character >= 'a' && character <= 'f');
    if (is_digit && digits.size() < 8) digits += character;
  }
  return "agents_sandbox_" + std::to_string(own_uid()) + "_" + digits;
}

std::vector<Ipv4Network> blocked_networks() {
  // Without the documentation networks: they have nothing of value, and closed networks use them as
  // their internet.
  return {{.address = {0x00000000}, .prefix_length = 8},   // this network
          {.address = {0x0A000000}, .prefix_length = 8},   // private
          {.address = {0x64400000}, .prefix_length = 10},  // carrier-grade NAT
          {.address = {0x7F000000}, .prefix_length = 8},   // loopback
          {.address = {0xA9FE0000}, .prefix_length = 16},  // link-local, metadata services
          {.address = {0xAC100000}, .prefix_length = 12},  // private
          {.address = {0xC0000000}, .prefix_length = 24},  // protocol assignments
          {.address = {0xC0A80000}, .prefix_length = 16},  // private
          {.address = {0xC6120000}, .prefix_length = 15},  // benchmarks
          {.address = {0xE0000000}, .prefix_length = 3}};  // multicast, reserved, broadcast
}

std::vector<nft::Set> host_sets(const HostNetwork& host) {
  const auto address_key = [](const Ipv4Address& address) {
    return nft::network_order(address.value);
  };
  return {nft::address_set("resolvers", 0, nft::plain_elements(host.resolvers, address_key)),
          nft::interface_set("uplinks", 0, 0, nft::plain_elements(host.uplinks, interface_key)),
          nft::address_set("onlink", NFT_SET_INTERVAL, nft::interval_elements(host.on_link))};
}

Ruleset make_ruleset(const RulesetOptions& options, const HostNetwork& host) {
  const std::string name = firewall_table_name(options.instance_id);
  const std::string owned_name = name + "_owned";
  const std::uint32_t owned = nft::kTableOwner | (options.persist ? nft::kTablePersist : 0U);
  // Connections of a sandbox are counted once, in the plain table.
  return {
      .plain = {nft::inet_table(options, host, name, 0, true), nft::arp_table(options, name, 0)},
      .owned = {nft::inet_table(options, host, owned_name, owned, false),
                nft::arp_table(options, owned_name, owned)}};
}

}  // namespace agbox
