// SPDX-License-Identifier: Apache-2.0
#include "model/resolv_conf.h"

#include <algorithm>
#include <sstream>
#include <string>

namespace agbox {

std::vector<Ipv4Address> read_resolvers(std::string_view resolv_conf) {
  std::vector<Ipv4Address> resolvers;
  std::istringstream lines{std::string(resolv_conf)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string keyword;
    std::string value;
    if (!(words >> keyword >> value) || keyword != "nameserver") continue;
    const auto address = parse_ipv4_address(value);
    if (!address || address->is_loopback()) continue;
    if (std::ranges::find(resolvers, *address) == resolvers.end()) resolvers.push_back(*address);
  }
  return resolvers;
}

}  // namespace agbox
