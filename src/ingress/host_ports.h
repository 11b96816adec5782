// SPDX-License-Identifier: Apache-2.0
// Which ports of this host's 127.0.0.1 are free to be published, and which process has one that is
// not. Both hold for the moment only: the engine has the last word when it publishes.
#pragma once

#include <optional>

#include "model/spec/ports.h"

namespace agbox {

// The first of them that is not free. What this process cannot tell, such as SCTP, counts as free.
// Blocks while it reads /proc.
std::optional<TakenPort> find_taken_port(const PortMappings& ports);

}  // namespace agbox
