// SPDX-License-Identifier: Apache-2.0
// From stored columns to records. The bytes may be anything (a bad disk, a hand with the sqlite3
// program): what cannot be a record is an Error that says which part, never a crash.
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

// All but containers, execs and the newest event, which have rows of their own.
Result<SandboxRecord> decode_sandbox(const SandboxRow& row);
// The same without what it was made from, as far as that cannot be read.
Result<SandboxRecord> decode_sandbox_life(const SandboxRow& row);
Result<store::v1::Container> decode_container(std::string_view name, std::string_view record);
Result<ExecRecord> decode_exec(const ExecRow& row);
// An event has to be the one that its key says.
Result<StoredEvent> decode_event(std::string_view sandbox_id, std::int64_t sequence,
                                 std::string_view body);

// Nanoseconds since 1970.
std::int64_t encode_time(WallTime time);
WallTime decode_time(std::int64_t nanoseconds);
// Of an event or an exec; absent where it is out of the range that a WallTime can hold.
std::optional<WallTime> decode_time(const google::protobuf::Timestamp& timestamp);

store::v1::Moment encode_moment(const Moment& moment);

std::string event_id(std::string_view sandbox_id, std::uint64_t sequence);

}  // namespace agbox
