// SPDX-License-Identifier: Apache-2.0
// Decodes stored columns into records. The bytes may be anything (a bad disk, manual edits): what
// cannot be decoded is an Error that names the part, never a crash.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "store/records.h"

namespace agbox {

// A row of table sandbox with its row of sandbox_origin.
struct SandboxRow {
  std::string_view sandbox_id;
  std::int64_t created_at = 0;
  std::int64_t state = 0;
  std::int64_t state_changed_at = 0;
  std::string_view error_code;
  std::string_view error_message;
  std::int64_t operation = 0;
  std::string_view operation_reason;
  std::int64_t operation_attempts = 0;
  std::optional<std::string_view> subnet;
  std::optional<std::int64_t> deleted_at;
  std::optional<std::string_view> quiet_since;
  std::string_view spec;
  std::string_view created_with;
};

struct ExecRow {
  std::string_view exec_id;
  std::string_view sandbox_id;
  std::int64_t state = 0;
  std::string_view request;
  std::string_view record;
};

// Everything but containers, execs and the newest event, which have their own rows.
Result<SandboxRecord> decode_sandbox(const SandboxRow& row);
// The same, but leaves out the spec or configuration if it cannot be decoded.
Result<SandboxRecord> decode_sandbox_leniently(const SandboxRow& row);
Result<store::v1::Container> decode_container(std::string_view name, std::string_view record);
Result<ExecRecord> decode_exec(const ExecRow& row);
// Fails if the event does not match its key.
Result<StoredEvent> decode_event(std::string_view sandbox_id, std::int64_t sequence,
                                 std::string_view body);

// Nanoseconds since 1970.
std::int64_t encode_time(WallTime time);
WallTime decode_time(std::int64_t nanoseconds);
// nullopt if out of the range of WallTime.
std::optional<WallTime> decode_time(const google::protobuf::Timestamp& timestamp);

store::v1::Moment encode_moment(const Moment& moment);
Moment decode_moment(const store::v1::Moment& moment);

std::string event_id(std::string_view sandbox_id, std::uint64_t sequence);

}  // namespace agbox
