// SPDX-License-Identifier: Apache-2.0
// The resolvers that resolv.conf(5) names.
#pragma once

#include <string_view>
#include <vector>

#include "model/ipv4.h"

namespace agbox {

// IPv4 resolvers that are not on loopback, in their order, each once. A sandbox cannot use others:
// on loopback it would find itself, and its network has no IPv6.
std::vector<Ipv4Address> read_resolvers(std::string_view resolv_conf);

}  // namespace agbox
