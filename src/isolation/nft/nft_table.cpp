// SPDX-License-Identifier: Apache-2.0
#include "isolation/nft/nft_table.h"

#include <string_view>

#include "isolation/nft/netfilter.h"

namespace agbox::nft {
namespace {

std::string_view family_name(std::uint8_t family) {
  switch (family) {
    case NFPROTO_INET:
      return "inet";
    case NFPROTO_IPV4:
      return "ip";
    case NFPROTO_ARP:
      return "arp";
    case NFPROTO_NETDEV:
      return "netdev";
    case NFPROTO_BRIDGE:
      return "bridge";
    case NFPROTO_IPV6:
      return "ip6";
    default:
      return "unknown";
  }
}

}  // namespace

std::string TableName::text() const {
  return std::string(family_name(family)) + " " + name;
}

}  // namespace agbox::nft
