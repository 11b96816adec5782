// SPDX-License-Identifier: Apache-2.0
// The resolvers that this host asks, as far as a sandbox could ask them too.
#pragma once

#include <vector>

#include "model/ipv4.h"

namespace agbox {

// As the host's files have them now.
std::vector<Ipv4Address> host_resolvers();

}  // namespace agbox
