// SPDX-License-Identifier: Apache-2.0
// What a sandbox's primary container sees of this host: the guest program, the directory of the
// guest's socket and that of its execs' output.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "control/sandbox/operations/operation.h"
#include "control/services.h"
#include "engine/engine.h"

namespace agbox {

// Creates the two directories if missing.
boost::asio::awaitable<OperationResult<Attachments>> make_attachments(Services& services,
                                                                      SandboxFacts& facts);

}  // namespace agbox
