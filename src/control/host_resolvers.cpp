// SPDX-License-Identifier: Apache-2.0
#include "control/host_resolvers.h"

#include "base/text_file.h"
#include "model/resolv_conf.h"

namespace agbox {

// systemd-resolved names itself, on loopback, in /etc/resolv.conf; its own list has the real ones.
std::vector<Ipv4Address> host_resolvers() {
  auto resolvers = read_resolvers(read_text_file("/etc/resolv.conf").value_or(""));
  if (resolvers.empty()) {
    resolvers = read_resolvers(read_text_file("/run/systemd/resolve/resolv.conf").value_or(""));
  }
  return resolvers;
}

}  // namespace agbox
