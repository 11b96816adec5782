// SPDX-License-Identifier: Apache-2.0
#include "guestlink/peer.h"

#include <sys/socket.h>

#include "base/process_stat.h"

namespace agbox::guestlink {

std::uint64_t start_time_of(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return stat ? stat->start_ticks : 0;
}

std::optional<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  Peer peer{credentials.uid, {credentials.pid, 0}};
  if (peer.process.pid != 0) peer.process.start_time = start_time_of(peer.process.pid);
  return peer;
}

}  // namespace agbox::guestlink
