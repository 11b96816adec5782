// SPDX-License-Identifier: Apache-2.0
// Brings a stopped sandbox back to ready: the same container on the same network. It never makes
// anything; what is missing fails it. Safe to run again from the top, also after a crash. `facts`
// is kept true whatever happens.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "control/sandbox/operations/operation.h"
#include "control/services.h"

namespace agbox {

boost::asio::awaitable<OperationResult<>> resume_sandbox(Services& services, SandboxPlace& place,
                                                         SandboxFacts& facts);

// After a resume that failed nothing runs on.
boost::asio::awaitable<OperationResult<>> undo_resume(Services& services, SandboxPlace& place,
                                                      const SandboxFacts& facts);

}  // namespace agbox
