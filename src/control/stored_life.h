// SPDX-License-Identifier: Apache-2.0
// How a sandbox's life is written into the store and read back, and the codes by which clients know
// the failures of its operations. Pure.
#pragma once

#include "model/lifecycle.h"
#include "store/records.h"

namespace agbox {

Operation stored_operation(Lifecycle state, bool cleans_up);
Lifecycle life_of(const SandboxRecord& record);

// The code that clients know for a failure of the operation that is under way in this state.
const char* failure_code(Lifecycle state);

}  // namespace agbox
