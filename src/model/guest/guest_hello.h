// SPDX-License-Identifier: Apache-2.0
// What a guest reports of itself when it has connected. Every text is bounded and readable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/guest/peer_process.h"

namespace agbox {

enum class GuestPhase { Fresh, Prepared, Entrypoint, Passed, Failed };

struct GuestMount {
  std::string target;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::string failure;  // why the guest could not inspect it
};

struct GuestHello {
  std::uint32_t protocol = 0;
  std::string build_id;  // in hex
  GuestPhase phase = GuestPhase::Fresh;
  PeerProcess process;
  std::string failure;  // not empty: the guest cannot prepare its container, and takes no go
  std::vector<std::string> notes;
  std::vector<GuestMount> mounts;
  std::vector<std::string> execs;  // that it has not forgotten yet, ended ones included
};

}  // namespace agbox
