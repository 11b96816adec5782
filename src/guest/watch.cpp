// SPDX-License-Identifier: Apache-2.0
#include "guest/watch.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"

namespace agbox::guest {

void wait_and_serve(const Watches& watches) {
  using std::chrono::milliseconds;
  std::vector<pollfd> polled;
  polled.reserve(watches.watches.size());
  for (const Watch& watch : watches.watches) polled.push_back({watch.fd, watch.events, 0});
  int timeout = -1;
  if (watches.wake_at) {
    const auto left =
        std::chrono::ceil<milliseconds>(*watches.wake_at - std::chrono::steady_clock::now());
    timeout = static_cast<int>(std::max(left, milliseconds(0)).count());
  }
  if (::poll(polled.data(), polled.size(), timeout) < 0) {
    AGBOX_CHECK(errno == EINTR, "poll");
    return;
  }
  for (std::size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents != 0) watches.watches[i].ready();
  }
}

}  // namespace agbox::guest
