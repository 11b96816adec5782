// SPDX-License-Identifier: Apache-2.0
// Removes whatever carries this sandbox's labels, however far materialize() came. Also used by
// delete and after a crash; the second time is not an error.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>

#include "control/sandbox/operations/operation.h"
#include "control/services.h"

namespace agbox {

boost::asio::awaitable<OperationResult<>> teardown(Services& services, SandboxPlace& place,
                                                   SandboxFacts& facts);

// The same, given up after `limit`.
boost::asio::awaitable<OperationResult<>> teardown_within(Services& services, SandboxPlace& place,
                                                          SandboxFacts& facts,
                                                          std::chrono::nanoseconds limit);

}  // namespace agbox
