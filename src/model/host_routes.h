// SPDX-License-Identifier: Apache-2.0
// The networks that the host has a route to, from the text of /proc/net/route.
#pragma once

#include <string_view>
#include <vector>

#include "model/ipv4.h"

namespace agbox {

// Without default routes, and without those over interfaces whose name begins with `our_bridges`.
std::vector<Ipv4Network> read_host_routes(std::string_view proc_net_route,
                                          std::string_view our_bridges);

}  // namespace agbox
