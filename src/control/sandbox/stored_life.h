// SPDX-License-Identifier: Apache-2.0
// How a sandbox's life is written into the store and read back, and the codes by which clients know
// the failures of its operations. Pure.
#pragma once

#include <vector>

#include "control/sandbox/operations/operation.h"
#include "model/sandbox/lifecycle.h"
#include "store/change.h"
#include "store/records.h"

namespace agbox {

Operation stored_operation(Lifecycle state, bool cleans_up);
Lifecycle life_of(const SandboxRecord& record);

// What a later daemon needs to know of the sandbox's objects.
std::vector<Mutation> stored(const SandboxFacts& facts);

// The code that clients know for a failure of the operation that is under way in this state.
const char* failure_code(Lifecycle state);

}  // namespace agbox
