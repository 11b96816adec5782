// SPDX-License-Identifier: Apache-2.0
// The resolvers that this host asks, as far as a sandbox could ask them too.
#pragma once

#include <filesystem>
#include <vector>

#include "model/network/ipv4.h"

namespace agbox {

// Those that name them. The first that names one for sandboxes counts: where a stub on loopback is
// in /etc/resolv.conf, the others say whom the stub asks.
std::vector<std::filesystem::path> host_resolver_files();

// As the files have them now.
std::vector<Ipv4Address> host_resolvers(const std::vector<std::filesystem::path>& files);

}  // namespace agbox
