// SPDX-License-Identifier: Apache-2.0
#include "isolation/host_link.h"

#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "isolation/netlink_socket.h"

namespace agbox {
namespace {

std::unexpected<Error> cannot_remove(const std::string& name, const KernelError& error) {
  return fail(Reason::Internal, "remove the link " + name + ": " + error.text() +
                                    "; remove it by hand with: ip link delete " + name);
}

}  // namespace

bool has_link(const std::string& name) {
  return ::if_nametoindex(name.c_str()) != 0;
}

Result<> remove_link(const std::string& name) {
  const unsigned index = ::if_nametoindex(name.c_str());
  if (index == 0) return {};
  auto socket = NetlinkSocket::open(NETLINK_ROUTE);
  if (!socket) return cannot_remove(name, socket.error());
  alignas(nlmsghdr) std::array<char, 256> bytes{};
  nlmsghdr* order = mnl_nlmsg_put_header(bytes.data());
  order->nlmsg_type = RTM_DELLINK;
  order->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  auto* header = static_cast<ifinfomsg*>(mnl_nlmsg_put_extra_header(order, sizeof(ifinfomsg)));
  header->ifi_family = AF_UNSPEC;
  header->ifi_index = static_cast<int>(index);
  const auto removed = socket->ask({bytes.data(), order->nlmsg_len}, [](const nlmsghdr*) {});
  if (removed || removed.error().number == ENODEV) return {};
  return cannot_remove(name, removed.error());
}

}  // namespace agbox
