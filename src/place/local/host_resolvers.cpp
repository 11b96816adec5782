// SPDX-License-Identifier: Apache-2.0
#include "place/local/host_resolvers.h"

#include "base/text_file.h"
#include "model/network/resolv_conf.h"

namespace agbox {

std::vector<std::filesystem::path> host_resolver_files() {
  return {"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf",
          "/run/NetworkManager/no-stub-resolv.conf"};
}

std::vector<Ipv4Address> host_resolvers(const std::vector<std::filesystem::path>& files) {
  for (const std::filesystem::path& file : files) {
    auto resolvers = read_resolvers(read_text_file(file).value_or(""));
    if (!resolvers.empty()) return resolvers;
  }
  return {};
}

}  // namespace agbox
