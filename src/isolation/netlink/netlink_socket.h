// SPDX-License-Identifier: Apache-2.0
// One netlink socket: questions with their answers, or a subscription. Every call returns at once,
// because the kernel answers while it takes the question. Knows nothing of what is said.
#pragma once

#include <linux/netlink.h>

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <string>

struct mnl_socket;

namespace agbox {

// What the kernel said, for whoever knows what was asked.
struct KernelError {
  int number = 0;              // errno
  std::string words;           // the kernel's own explanation, where it gave one
  std::uint32_t sequence = 0;  // of the message that was refused

  // The explanation, or the text of errno.
  std::string text() const;
};

template <class T = void>
using KernelResult = std::expected<T, KernelError>;

class NetlinkSocket {
 public:
  using Take = std::function<void(const nlmsghdr*)>;

  // `bus` is NETLINK_NETFILTER or NETLINK_ROUTE; `groups` a bit for each subscribed group.
  static KernelResult<NetlinkSocket> open(int bus, std::uint32_t groups = 0);

  int fd() const;
  // How the kernel calls this socket: changes that it made carry it.
  std::uint32_t port_id() const;

  // Sends the messages and hands every answer to `take`. EINTR: what was listed changed meanwhile.
  KernelResult<> ask(std::span<const char> messages, const Take& take);

  // Hands everything that has arrived to `take`; false where some of it was lost.
  bool drain(const Take& take);

 private:
  struct Close {
    void operator()(mnl_socket* socket) const;
  };
  explicit NetlinkSocket(mnl_socket* socket) : socket_(socket) {}
  // The number of bytes; 0 where nothing is there.
  KernelResult<std::size_t> receive(std::span<char> into);

  std::unique_ptr<mnl_socket, Close> socket_;
};

}  // namespace agbox
