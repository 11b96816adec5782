// SPDX-License-Identifier: Apache-2.0
// The resolvers that resolv.conf(5) names, and which of them a sandbox can be given.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/network/ipv4.h"

namespace agbox {

// Those that a sandbox can be given, in their order, each once.
std::vector<Ipv4Address> read_resolvers(std::string_view resolv_conf);

// On loopback a sandbox would find itself, or the engine would ask on its behalf from the host's
// side, past every rule; and its network has no IPv6.
bool can_be_given(const Ipv4Address& resolver);

// Whether a container may be made with these. One that has none is left to the engine, which then
// takes the host's own.
Result<> check_resolvers(const std::vector<std::string>& resolvers);

}  // namespace agbox
