// SPDX-License-Identifier: Apache-2.0
// Pauses a sandbox whose isolation does not hold, and unpauses it. Safe to repeat; each call to the
// engine runs to completion even if the operation is cancelled, so that none is overtaken by the
// opposite one.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "control/sandbox/operations/operation.h"
#include "control/services.h"

namespace agbox {

// All its containers.
boost::asio::awaitable<OperationResult<>> pause_sandbox(Services& services,
                                                        const SandboxFacts& facts);
// Succeeds if they are not paused, do not run or are gone.
boost::asio::awaitable<OperationResult<>> unpause_sandbox(Services& services,
                                                          const SandboxFacts& facts);

// Whether the daemon paused it or has begun to.
bool is_paused(const SandboxFacts& facts);

}  // namespace agbox
