// SPDX-License-Identifier: Apache-2.0
// Brings a sandbox from accepted to ready. Safe to run again from the top: each step finds what an
// earlier run has made. `facts` is kept true whatever happens.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>

#include "control/sandbox/operations/operation.h"
#include "control/services.h"

namespace agbox {

// Told of phases that take a while, such as a pull.
using Progress = std::function<void(std::string phase)>;

boost::asio::awaitable<OperationResult<>> materialize(Services& services, SandboxPlace& place,
                                                      SandboxFacts& facts, Progress progress);

}  // namespace agbox
