// SPDX-License-Identifier: Apache-2.0
// One start of a sandbox's primary container, whoever wants it: first up to the guest, which has
// run nothing of the image yet, then, once the isolation is proven, the image's entrypoint and the
// caller's command. `facts` is kept true whatever happens. Lost where the container ended before
// its guest had said why.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "control/sandbox/operations/operation.h"
#include "control/services.h"

namespace agbox {

// Starts the container. The link to its guest is there, and nobody of an earlier start is.
boost::asio::awaitable<OperationResult<>> start_primary(Services& services, SandboxPlace& place,
                                                        SandboxFacts& facts);

// Waits for the guest of this start. Outside Services::starts: a guest that does not come up must
// not hold the starts of other sandboxes.
boost::asio::awaitable<OperationResult<>> await_guest(Services& services, SandboxPlace& place,
                                                      const SandboxFacts& facts);

// That the host's isolation holds this sandbox; while nothing but the guest runs in it.
boost::asio::awaitable<OperationResult<>> prove_isolation(Services& services, SandboxPlace& place,
                                                          const SandboxFacts& facts);

// Lets the entrypoint and the command run, and waits until the entrypoint was passed.
boost::asio::awaitable<OperationResult<>> let_go(Services& services, SandboxPlace& place,
                                                 SandboxFacts& facts);

}  // namespace agbox
