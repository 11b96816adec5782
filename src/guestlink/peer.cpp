// SPDX-License-Identifier: Apache-2.0
#include "guestlink/peer.h"

#include <sys/socket.h>

#include "base/process_stat.h"

namespace agbox::guestlink {

std::optional<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  Peer peer{credentials.uid, {credentials.pid, 0}};
  if (const auto stat = read_process_stat(credentials.pid)) {
    peer.process.start_time = stat->start_ticks;
  }
  return peer;
}

}  // namespace agbox::guestlink
