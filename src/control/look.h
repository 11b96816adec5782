// SPDX-License-Identifier: Apache-2.0
// Asks the engine what became of a sandbox's primary container.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>

#include "control/operation.h"
#include "control/services.h"
#include "docker/observations.h"

namespace agbox {

// Nothing where the engine does not have it. An error says nothing about the container.
boost::asio::awaitable<Result<std::optional<ContainerSeen>>> look_at_primary(
    Services& services, const SandboxFacts& facts);

}  // namespace agbox
