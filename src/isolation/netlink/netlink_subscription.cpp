// SPDX-License-Identifier: Apache-2.0
#include "isolation/netlink/netlink_subscription.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "async/await.h"
#include "async/cancellation.h"

namespace agbox {

KernelResult<NetlinkSubscription> NetlinkSubscription::open(const asio::any_io_executor& executor,
                                                            int bus, std::uint32_t groups) {
  auto socket = NetlinkSocket::open(bus, groups);
  if (!socket) return std::unexpected(socket.error());
  const int second = ::fcntl(socket->fd(), F_DUPFD_CLOEXEC, 0);
  if (second < 0) {
    return std::unexpected(KernelError{.number = errno, .words = {}, .sequence = 0});
  }
  asio::posix::stream_descriptor readable(executor, second);
  return NetlinkSubscription(std::move(*socket), std::move(readable));
}

asio::awaitable<bool> NetlinkSubscription::wait() {
  if (co_await is_cancelled()) co_return false;
  const auto [problem] =
      co_await readable_.async_wait(asio::posix::stream_descriptor::wait_read, kAwait);
  co_return !problem && !co_await is_cancelled();
}

}  // namespace agbox
