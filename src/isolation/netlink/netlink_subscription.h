// SPDX-License-Identifier: Apache-2.0
// Waits for events of a netlink multicast group.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>

#include "isolation/netlink/netlink_socket.h"

namespace agbox {

namespace asio = boost::asio;

class NetlinkSubscription {
 public:
  static KernelResult<NetlinkSubscription> open(const asio::any_io_executor& executor, int bus,
                                                std::uint32_t groups);

  // Returns when events have arrived; false if cancelled.
  asio::awaitable<bool> wait();

  // See NetlinkSocket::drain().
  bool drain(const NetlinkSocket::Take& take) { return socket_.drain(take); }

 private:
  NetlinkSubscription(NetlinkSocket socket, asio::posix::stream_descriptor readable)
      : socket_(std::move(socket)), readable_(std::move(readable)) {}

  NetlinkSocket socket_;
  asio::posix::stream_descriptor readable_;  // a second descriptor of the same socket
};

}  // namespace agbox
