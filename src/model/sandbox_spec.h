// SPDX-License-Identifier: Apache-2.0
// What a caller asked for, checked: whoever holds a SandboxSpec need not look again. The first
// problem wins, in the order that existing clients know, and its message names the field.
#pragma once

#include <chrono>
#include <optional>

#include "agbox/v1/service.pb.h"
#include "agbox/v1/spec.pb.h"
#include "base/result.h"
#include "model/limits.h"

namespace agbox {

struct SandboxSpec {
  v1::CreateSpec create_spec;  // as it is stored
  std::optional<std::chrono::nanoseconds> idle_ttl;
  std::optional<CpuLimit> cpu_limit;
  std::optional<ByteLimit> memory_limit;
};

Result<SandboxSpec> parse_create_request(const v1::CreateSandboxRequest& request);

// Of a stored spec; the same checks, so that a record that was damaged is not acted upon.
Result<SandboxSpec> parse_create_spec(v1::CreateSpec spec);

}  // namespace agbox
