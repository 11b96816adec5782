// SPDX-License-Identifier: Apache-2.0
#include "isolation/nft/rule_parts.h"

#include <linux/rtnetlink.h>

#include <bit>
#include <cstddef>
#include <utility>

#include "isolation/nft/netfilter.h"

namespace agbox::nft {
namespace {

constexpr std::uint8_t kReplyDirection = 1;  // IP_CT_DIR_REPLY, not in any header available here

template <class Number>
Bytes host_order(Number number) {
  Bytes bytes(sizeof(number));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t place = std::endian::native == std::endian::little ? i : bytes.size() - 1 - i;
    bytes[place] = static_cast<std::uint8_t>(number >> (8 * i));
  }
  return bytes;
}

Bytes port_bytes(std::uint16_t port) {
  return {static_cast<std::uint8_t>(port >> 8), static_cast<std::uint8_t>(port)};
}

}  // namespace

Bytes network_order(std::uint32_t number) {
  return {static_cast<std::uint8_t>(number >> 24), static_cast<std::uint8_t>(number >> 16),
          static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number)};
}

Bytes text_bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

std::uint32_t state_bit(unsigned connection_info) {
  return 1U << (connection_info + 1);  // NF_CT_STATE_BIT
}

Rule operator+(Rule left, const Rule& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Rule from_bridge(const std::string& prefix, bool ours) {
  return {LoadMeta{NFT_META_IIFNAME}, Compare{.equal = ours, .value = text_bytes(prefix)}};
}

Rule to_bridge(const std::string& prefix, bool ours) {
  return {LoadMeta{NFT_META_OIFNAME}, Compare{.equal = ours, .value = text_bytes(prefix)}};
}

Rule is_ipv4(bool equal) {
  return {LoadMeta{NFT_META_NFPROTO}, Compare{.equal = equal, .value = {NFPROTO_IPV4}}};
}

Rule destination() {
  return is_ipv4() + Rule{LoadPayload{NFT_PAYLOAD_NETWORK_HEADER, 16, 4}};
}

Rule destination_in(const std::string& set) {
  return destination() + Rule{Lookup{.set = set}};
}

Rule within(const Ipv4Network& network, bool inside) {
  const std::uint32_t mask = ~(network.last().value ^ network.address.value);
  return {Mask{network_order(mask)},
          Compare{.equal = inside, .value = network_order(network.address.value)}};
}

Rule connection_state(std::uint32_t any_of) {
  return {LoadConnection{.key = NFT_CT_STATE, .direction = {}}, Mask{host_order(any_of)},
          Compare{.equal = false, .value = host_order(std::uint32_t{0})}};
}

Rule is_reply() {
  return {LoadConnection{.key = NFT_CT_DIRECTION, .direction = {}},
          Compare{.value = {kReplyDirection}}};
}

Rule opened_towards(const Ipv4Network& pool) {
  return Rule{LoadConnection{.key = NFT_CT_SRC_IP, .direction = kReplyDirection}} + within(pool);
}

Rule route_exists(std::uint32_t of, bool exists) {
  return {
      LoadRoute{.result = NFT_FIB_RESULT_OIF, .flags = of | NFTA_FIB_F_IIF | NFTA_FIB_F_PRESENT},
      Compare{.value = host_order(std::uint32_t{exists})}};
}

Rule destination_is_this_host() {
  return {LoadRoute{.result = NFT_FIB_RESULT_ADDRTYPE, .flags = NFTA_FIB_F_DADDR},
          Compare{.value = host_order(std::uint32_t{RTN_LOCAL})}};
}

Rule sent_by_others_than(const std::vector<std::uint32_t>& uids) {
  Rule rule;
  for (const std::uint32_t uid : uids) {
    rule = std::move(rule) +
           Rule{LoadMeta{NFT_META_SKUID}, Compare{.equal = false, .value = host_order(uid)}};
  }
  return rule;
}

Rule packet_kind(std::uint8_t kind) {
  return {LoadMeta{NFT_META_PKTTYPE}, Compare{.value = {kind}}};
}

Rule protocol(std::uint8_t number) {
  return {LoadMeta{NFT_META_L4PROTO}, Compare{.value = {number}}};
}

Rule destination_port(std::uint16_t port) {
  return {LoadPayload{NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2}, Compare{.value = port_bytes(port)}};
}

Rule accept() {
  return {Verdict{.code = NF_ACCEPT, .chain = {}}};
}
Rule drop() {
  return {Count{}, Verdict{.code = NF_DROP, .chain = {}}};
}
Rule leave() {
  return {Verdict{.code = NFT_RETURN, .chain = {}}};
}
Rule jump_to(const std::string& chain) {
  return {Verdict{.code = NFT_JUMP, .chain = chain}};
}
Rule go_to(const std::string& chain) {
  return {Verdict{.code = NFT_GOTO, .chain = chain}};
}
Rule reject_unreachable() {
  return {Count{},
          Reject{.type = NFT_REJECT_ICMPX_UNREACH, .code = NFT_REJECT_ICMPX_ADMIN_PROHIBITED}};
}

}  // namespace agbox::nft
