// SPDX-License-Identifier: Apache-2.0
// One start of a sandbox's primary container, for any operation: first up to the guest, which has
// run nothing of the image yet; then, once the isolation is verified, the image's entrypoint and
// the caller's command. `facts` is kept current even on failure. Lost if the container ended before
// its guest reported why.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "control/companion/sandbox_companions.h"
#include "control/sandbox/operations/operation.h"
#include "control/sandbox/operations/operation_services.h"

namespace agbox {

// The sandbox's network exists: verifies from outside that it is isolated, and lets the companions
// start. What they run is the image's, from the first moment.
boost::asio::awaitable<OperationResult<>> admit_companions(OperationServices& services,
                                                           SandboxPlace& place,
                                                           SandboxCompanions& companions);

// Starts the container. Requires the link to its guest, and no guest of an earlier start.
boost::asio::awaitable<OperationResult<>> start_primary(OperationServices& services,
                                                        SandboxPlace& place, SandboxFacts& facts);

// Waits for the guest of this start, and compares what it found at the targets of mounts. Its
// process is then in the facts. Outside OperationServices::starts: a guest that does not come up
// must not delay the starts of other sandboxes.
boost::asio::awaitable<OperationResult<>> await_guest(OperationServices& services,
                                                      SandboxPlace& place, SandboxFacts& facts);

// Verifies that this sandbox is isolated, while only the guest runs in it.
boost::asio::awaitable<OperationResult<>> verify_isolation(OperationServices& services,
                                                           SandboxPlace& place,
                                                           const SandboxFacts& facts);

// Copies what the caller asked for into the new container, before anything of the image runs. What
// shadow copies lack is recorded in the facts.
boost::asio::awaitable<OperationResult<>> copy_into_primary(OperationServices& services,
                                                            SandboxPlace& place,
                                                            SandboxFacts& facts,
                                                            Engine::Progress progress);

// Starts the entrypoint and the command, and waits until the entrypoint has completed.
boost::asio::awaitable<OperationResult<>> start_entrypoint(OperationServices& services,
                                                           SandboxPlace& place,
                                                           SandboxFacts& facts);

}  // namespace agbox
