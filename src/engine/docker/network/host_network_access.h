// SPDX-License-Identifier: Apache-2.0
// Access to this host's network, as functions, because the adapter does not depend on the layer
// that implements them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/network/ipv4.h"

namespace agbox {

struct HostNetworkAccess {
  // Without those of interfaces whose names begin with `our_bridges`.
  std::function<Result<std::vector<Ipv4Network>>(std::string_view our_bridges)> networks_in_use;
  // Links (network interfaces) by name; called on other threads, because the kernel takes a while.
  std::function<bool(const std::string& name)> has_link;
  std::function<Result<std::vector<std::string>>(std::string_view prefix)> find_links;
  std::function<Result<>(const std::string& name)> remove_link;
};

}  // namespace agbox
