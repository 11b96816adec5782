// SPDX-License-Identifier: Apache-2.0
// What a caller asked for, as values that can be acted on. A request is checked once, when it
// comes: the first problem wins, in the order that existing clients know, and its message names the
// field. What was accepted stays accepted, also by a later or an earlier version with other checks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "agbox/v1/service.pb.h"
#include "agbox/v1/spec.pb.h"
#include "base/result.h"
#include "model/spec/limits.h"

namespace agbox {

struct SandboxSpec {
  v1::CreateSpec create_spec;  // as it is stored
  std::size_t bytes = 0;       // of it
  std::optional<std::chrono::nanoseconds> idle_ttl;
  std::optional<std::chrono::nanoseconds> lease_ttl{};
  std::optional<CpuLimit> cpu_limit;
  std::optional<ByteLimit> memory_limit;
  std::optional<ByteLimit> disk_limit{};
};

Result<SandboxSpec> parse_create_request(const v1::CreateSandboxRequest& request);
Result<SandboxSpec> parse_create_spec(v1::CreateSpec spec);

// Refuses more CPUs than the engine has; 0 if their number is not known.
Result<> check_cpus(const SandboxSpec& spec, std::int64_t cpus);

// Refuses a disk_limit if the engine cannot keep it; `shortcoming` says why, and is empty if it can
// or that is not known.
Result<> check_disk_limit_support(const SandboxSpec& spec, const std::string& shortcoming);

// Of an accepted sandbox. Fails only if it cannot be understood.
Result<SandboxSpec> read_stored_spec(v1::CreateSpec spec);

// Fails if the spec has a field that this version does not know, as one of a later version may: a
// sandbox that is made without it would not be what was asked for.
Result<> check_supported(const v1::CreateSpec& spec);

}  // namespace agbox
