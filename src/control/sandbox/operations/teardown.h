// SPDX-License-Identifier: Apache-2.0
// Removes everything that carries this sandbox's labels, regardless of how far materialize() got.
// Also used by delete and after a crash; repeating it is no error.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>

#include "control/sandbox/operations/operation.h"
#include "control/sandbox/operations/operation_services.h"

namespace agbox {

boost::asio::awaitable<OperationResult<>> teardown(OperationServices& services, SandboxPlace& place,
                                                   SandboxFacts& facts);

// The same, cancelled after `limit`.
boost::asio::awaitable<OperationResult<>> teardown_within(OperationServices& services,
                                                          SandboxPlace& place, SandboxFacts& facts,
                                                          std::chrono::nanoseconds limit);

}  // namespace agbox
