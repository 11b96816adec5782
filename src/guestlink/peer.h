// SPDX-License-Identifier: Apache-2.0
// The process at the other end of a Unix socket, as the kernel reports it.
#pragma once

#include <sys/types.h>

#include <optional>

#include "model/guest/peer_process.h"

namespace agbox::guestlink {

struct Peer {
  uid_t uid = 0;
  PeerProcess process;
};

// nullopt if the socket has no peer any more.
std::optional<Peer> peer_of(int socket);

}  // namespace agbox::guestlink
