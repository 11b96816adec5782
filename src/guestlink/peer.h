// SPDX-License-Identifier: Apache-2.0
// Who is at the other end of a Unix socket, as the kernel says.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace agbox::guestlink {

// A process for as long as the machine runs: a number alone is used again. To be stored with the
// sandbox.
struct PeerProcess {
  pid_t pid = 0;                 // 0 where the engine's processes are not ours to see
  std::uint64_t start_time = 0;  // in clock ticks since boot; 0 where it is not known

  // Whether both can be the same process; what is not known on one side contradicts nothing.
  bool may_be(const PeerProcess& other) const;
  bool operator==(const PeerProcess&) const = default;
};

struct Peer {
  uid_t uid = 0;
  PeerProcess process;
};

// Nothing where the socket has no peer any more.
std::optional<Peer> peer_of(int socket);

// From /proc; 0 where it is gone.
std::uint64_t start_time_of(pid_t pid);

}  // namespace agbox::guestlink
