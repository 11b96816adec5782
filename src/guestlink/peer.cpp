// SPDX-License-Identifier: Apache-2.0
#include "guestlink/peer.h"

#include <sys/socket.h>

#include "base/process_stat.h"

namespace agbox::guestlink {

std::optional<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  return Peer{credentials.uid, {credentials.pid, 0}};
}

std::uint64_t start_time_of(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return stat ? stat->start_ticks : 0;
}

PeerProcess if_alive(const PeerProcess& process) {
  const bool is_alive = process.pid != 0 && process.start_time != 0 &&
                        start_time_of(process.pid) == process.start_time;
  return is_alive ? process : PeerProcess{};
}

}  // namespace agbox::guestlink
