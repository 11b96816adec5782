// SPDX-License-Identifier: Apache-2.0
// How a sandbox's operation and facts are written to the store and read back. Pure.
#pragma once

#include <vector>

#include "control/sandbox/operations/operation.h"
#include "model/sandbox/work.h"
#include "store/change.h"
#include "store/records.h"

namespace agbox {

OperationUnderWay stored(const WorkState& state);
WorkState work_of(const SandboxRecord& record);

// The isolation state in the primary container's record.
IsolationState isolation_of(const store::v1::Container& primary);
void put_isolation(const IsolationState& isolation, store::v1::Container& primary);

// The restarts in the primary container's record.
RestartState restarts_of(const store::v1::Container& primary);
void put_restarts(const WorkState& state, store::v1::Container& primary);

// What a later daemon needs to know of the sandbox's objects.
std::vector<Mutation> stored(const SandboxFacts& facts);

}  // namespace agbox
