// SPDX-License-Identifier: Apache-2.0
// The resolvers of this host, as far as a sandbox can use them too.
#pragma once

#include <filesystem>
#include <vector>

#include "model/network/ipv4.h"

namespace agbox {

// The files that list them. The first one with a resolver usable by sandboxes counts: if
// /etc/resolv.conf has a stub on loopback, the others list the upstreams of the stub.
std::vector<std::filesystem::path> host_resolver_files();

// As currently listed in the files.
std::vector<Ipv4Address> host_resolvers(const std::vector<std::filesystem::path>& files);

}  // namespace agbox
