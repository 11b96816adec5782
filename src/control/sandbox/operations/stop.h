// SPDX-License-Identifier: Apache-2.0
// Stops a ready sandbox: first its execs, then its container. Everything stays in the engine, for a
// resume. Safe to repeat from the beginning; objects that are already stopped or gone are no error.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "control/exec/sandbox_execs.h"
#include "control/sandbox/operations/operation.h"
#include "control/sandbox/operations/operation_services.h"

namespace agbox {

// The guest was asked to end `execs` when the stop was decided.
boost::asio::awaitable<OperationResult<>> stop_sandbox(OperationServices& services,
                                                       SandboxPlace& place,
                                                       const SandboxFacts& facts,
                                                       SandboxExecs& execs);

// Stops everything that carries the sandbox's labels, if nothing else is known of it.
boost::asio::awaitable<OperationResult<>> halt_sandbox(OperationServices& services,
                                                       const SandboxFacts& facts);

}  // namespace agbox
