// SPDX-License-Identifier: Apache-2.0
#include "isolation/nft_table.h"

#include "isolation/netfilter.h"

namespace agbox::nft {

std::string TableName::text() const {
  return (family == NFPROTO_ARP ? "arp " : "inet ") + name;
}

}  // namespace agbox::nft
