// SPDX-License-Identifier: Apache-2.0
// A stored exec as clients see it.
#pragma once

#include <cstdint>

#include "agbox/v1/exec.pb.h"
#include "store/records.h"

namespace agbox {

// `last_event_sequence` is a sequence of the sandbox's history at which the record was valid.
v1::ExecStatus to_exec_status(const ExecRecord& exec, std::uint64_t last_event_sequence);

}  // namespace agbox
