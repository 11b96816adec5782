// SPDX-License-Identifier: Apache-2.0
// A netlink socket, for requests or a subscription. Calls do not block, because the kernel answers
// synchronously. Knows nothing of the content.
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

// The kernel's error; the caller knows the request.
struct KernelError {
  int number = 0;              // errno
  std::string words;           // the kernel's own explanation, if any
  std::uint32_t sequence = 0;  // of the refused message

  // The explanation, or the text of errno.
  std::string text() const;
};

template <class T = void>
using KernelResult = std::expected<T, KernelError>;

class NetlinkSocket {
 public:
  using Take = std::function<void(const nlmsghdr*)>;

  // `bus` is NETLINK_NETFILTER or NETLINK_ROUTE; `groups` has a bit per subscribed group.
  static KernelResult<NetlinkSocket> open(int bus, std::uint32_t groups = 0);

  int fd() const;
  // The kernel's ID of this socket; events about its changes carry it.
  std::uint32_t port_id() const;

  // Sends the messages and passes every answer to `take`. EINTR: a dump was inconsistent.
  KernelResult<> ask(std::span<const char> messages, const Take& take);

  // Passes everything that has arrived to `take`; false if messages were lost.
  bool drain(const Take& take);

 private:
  struct Close {
    void operator()(mnl_socket* socket) const;
  };
  explicit NetlinkSocket(mnl_socket* socket) : socket_(socket) {}
  // The number of bytes; 0 if nothing is available.
  KernelResult<std::size_t> receive(std::span<char> into);

  std::unique_ptr<mnl_socket, Close> socket_;
};

}  // namespace agbox
