// SPDX-License-Identifier: Apache-2.0
// Inspects a sandbox's primary container and network in the engine.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "control/sandbox/operations/operation.h"
#include "control/sandbox/operations/operation_services.h"
#include "model/sandbox/restart_plan.h"

namespace agbox {

// On an error nothing is known about the sandbox.
boost::asio::awaitable<OperationResult<SandboxInspection>> inspect_sandbox(
    OperationServices& services, const SandboxFacts& facts);

// Stops a container that is not as expected. One that is gone, or not ours, is left alone.
boost::asio::awaitable<OperationResult<>> stop_unusable(OperationServices& services,
                                                        const SandboxFacts& facts);

}  // namespace agbox
