// SPDX-License-Identifier: Apache-2.0
// Which ports of this host's 127.0.0.1 are free to be published, and which process has one that is
// not. Both hold for the moment only: the engine has the last word when it publishes.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "model/spec/ports.h"

namespace agbox {

// How long to look for the process behind a socket, of which the kernel names only the user. The
// processes of a sandbox, which can have millions of descriptors, are looked through as well.
struct HolderSearch {
  std::size_t descriptors = 100'000;
  std::chrono::milliseconds time{250};
};

// The first of them that is not free. What this process cannot tell, such as SCTP, counts as free.
// Blocks while it reads /proc.
std::optional<TakenPort> find_taken_port(const PortMappings& ports,
                                         const HolderSearch& search = {});

}  // namespace agbox
