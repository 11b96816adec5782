// SPDX-License-Identifier: Apache-2.0
// Brings a sandbox from accepted to ready. Safe to repeat from the beginning: each step finds what
// an earlier run created. `facts` is kept current even on failure.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "control/companion/sandbox_companions.h"
#include "control/sandbox/operations/operation.h"
#include "control/sandbox/operations/operation_services.h"
#include "engine/engine.h"

namespace agbox {

boost::asio::awaitable<OperationResult<>> materialize(OperationServices& services,
                                                      SandboxPlace& place, SandboxFacts& facts,
                                                      SandboxCompanions& companions,
                                                      Engine::Progress progress);

}  // namespace agbox
