// SPDX-License-Identifier: Apache-2.0
#include "model/network/resolv_conf.h"

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
    if (!address || !can_be_given(*address)) continue;
    if (std::ranges::find(resolvers, *address) == resolvers.end()) resolvers.push_back(*address);
  }
  return resolvers;
}

bool can_be_given(const Ipv4Address& resolver) {
  return !resolver.is_loopback() && !resolver.is_unspecified();
}

Result<> check_resolvers(const std::vector<std::string>& resolvers) {
  if (resolvers.empty()) {
    return fail(reason::kHostNotReady,
                "no resolver for the sandbox: the host's are all on loopback or IPv6; set "
                "network.dns in config.toml and restart agboxd");
  }
  for (const std::string& text : resolvers) {
    const auto resolver = parse_ipv4_address(text);
    if (resolver && can_be_given(*resolver)) continue;
    return fail(reason::kHostNotReady,
                "resolver '" + text +
                    "' cannot be given to the sandbox: it is not an IPv4 address "
                    "outside of loopback; delete the sandbox and create it again");
  }
  return {};
}

}  // namespace agbox
