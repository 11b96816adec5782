// SPDX-License-Identifier: Apache-2.0
// The process at the other end of a Unix socket, as the kernel reports it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "model/guest/peer_process.h"

namespace agbox::guestlink {

struct Peer {
  uid_t uid = 0;
  PeerProcess process;
};

// Without the start time, which costs more. nullopt if the socket has no peer any more.
std::optional<Peer> peer_of(int socket);
// Of the process that has this pid now; 0 if unknown.
std::uint64_t start_time_of(pid_t pid);
// That of a process that starts now.
std::uint64_t start_time_now();
// Whether this process has the other pid in a PID namespace outside of its own container: there no
// process can choose its pid. False if it has ended, and true if it is in no namespace of ours.
bool may_have_pid_outside(pid_t process, std::int64_t pid);
// The process if it exists, with the same start; otherwise nothing is known of it.
PeerProcess if_alive(const PeerProcess& process);

}  // namespace agbox::guestlink
