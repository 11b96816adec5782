// SPDX-License-Identifier: Apache-2.0
// Brings a stopped sandbox back to ready: the same container on the same network. It never creates
// anything and fails if something is missing. Safe to repeat from the beginning, also after a
// crash. `facts` is kept current even on failure.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "control/companion/sandbox_companions.h"
#include "control/sandbox/operations/operation.h"
#include "control/sandbox/operations/operation_services.h"

namespace agbox {

// Companions are started too, if their supervision has begun with it; if they run already, only the
// primary is.
boost::asio::awaitable<OperationResult<>> resume_sandbox(OperationServices& services,
                                                         SandboxPlace& place, SandboxFacts& facts,
                                                         SandboxCompanions& companions);

// Stops what a failed resume has started.
boost::asio::awaitable<OperationResult<>> undo_resume(OperationServices& services,
                                                      SandboxPlace& place,
                                                      const SandboxFacts& facts);

}  // namespace agbox
