// SPDX-License-Identifier: Apache-2.0
// Brings a ready sandbox to a stop: first its execs, then its container. All of it stays in the
// engine, for a resume. Safe to run again from the top; what is stopped or gone already is fine.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "control/exec/sandbox_execs.h"
#include "control/sandbox/operations/operation.h"
#include "control/services.h"

namespace agbox {

// Of `execs` the guest was asked for their ends when the stop was decided.
boost::asio::awaitable<OperationResult<>> stop_sandbox(Services& services, SandboxPlace& place,
                                                       const SandboxFacts& facts,
                                                       SandboxExecs& execs);

// Stops whatever carries the sandbox's labels, where that is all that is known of it.
boost::asio::awaitable<OperationResult<>> halt_sandbox(Services& services,
                                                       const SandboxFacts& facts);

}  // namespace agbox
