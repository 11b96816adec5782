// SPDX-License-Identifier: Apache-2.0
#include "isolation/netlink/host_link.h"

#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>

#include "isolation/netlink/netlink_socket.h"

namespace agbox {
namespace {

std::unexpected<Error> cannot_remove(const std::string& name, const KernelError& error) {
  return fail(reason::kHostNotReady, "remove the link " + name + ": " + error.text() +
                                         "; remove it with: ip link delete " + name);
}

}  // namespace

bool has_link(const std::string& name) {
  return ::if_nametoindex(name.c_str()) != 0;
}

Result<std::vector<std::string>> find_links(std::string_view prefix) {
  using Links = std::unique_ptr<struct if_nameindex[], decltype(&::if_freenameindex)>;
  const Links links(::if_nameindex(), ::if_freenameindex);
  if (!links) return std::unexpected(errno_error("list the links of this host", errno));
  std::vector<std::string> names;
  for (std::size_t i = 0; links[i].if_index != 0; ++i) {
    if (std::string_view(links[i].if_name).starts_with(prefix))
      names.emplace_back(links[i].if_name);
  }
  return names;
}

Result<> remove_link(const std::string& name) {
  const unsigned index = ::if_nametoindex(name.c_str());
  if (index == 0) return {};
  auto socket = NetlinkSocket::open(NETLINK_ROUTE);
  if (!socket) return cannot_remove(name, socket.error());
  alignas(nlmsghdr) std::array<char, 256> bytes{};
  nlmsghdr* request = mnl_nlmsg_put_header(bytes.data());
  request->nlmsg_type = RTM_DELLINK;
  request->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  auto* header = static_cast<ifinfomsg*>(mnl_nlmsg_put_extra_header(request, sizeof(ifinfomsg)));
  header->ifi_family = AF_UNSPEC;
  header->ifi_index = static_cast<int>(index);
  const auto removed = socket->ask({bytes.data(), request->nlmsg_len}, [](const nlmsghdr*) {});
  if (removed || removed.error().number == ENODEV) return {};
  return cannot_remove(name, removed.error());
}

}  // namespace agbox
