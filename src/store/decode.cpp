// SPDX-License-Identifier: Apache-2.0
#include "store/decode.h"

#include <google/protobuf/message_lite.h>

#include <climits>

#include "model/reasons.h"

namespace agbox {
namespace {

using google::protobuf::MessageLite;

std::unexpected<Error> unreadable(std::string what) {
  return fail(reason::kStoreFailed, "stored " + std::move(what));
}

bool parse(MessageLite& message, std::string_view bytes) {
  return bytes.size() <= INT_MAX &&
         message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

template <class Enum>
std::optional<Enum> enum_value(std::int64_t number, bool (*is_valid)(int)) {
  if (number < INT_MIN || number > INT_MAX || !is_valid(static_cast<int>(number))) {
    return std::nullopt;
  }
  return static_cast<Enum>(number);
}

bool is_operation(int number) {
  return number >= static_cast<int>(Operation::None) &&
         number <= static_cast<int>(Operation::CleaningUp);
}

}  // namespace

std::int64_t encode_time(WallTime time) {
  return time.time_since_epoch().count();
}

WallTime decode_time(std::int64_t nanoseconds) {
  return WallTime(std::chrono::nanoseconds(nanoseconds));
}

std::optional<WallTime> decode_time(const google::protobuf::Timestamp& timestamp) {
  constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
  constexpr std::int64_t kLimit = INT64_MAX / kNanosecondsPerSecond - 1;
  if (timestamp.seconds() < -kLimit || timestamp.seconds() > kLimit) return std::nullopt;
  if (timestamp.nanos() < 0 || timestamp.nanos() >= kNanosecondsPerSecond) return std::nullopt;
  return decode_time(timestamp.seconds() * kNanosecondsPerSecond + timestamp.nanos());
}

store::v1::Moment encode_moment(const Moment& moment) {
  store::v1::Moment encoded;
  encoded.set_wall(encode_time(moment.wall));
  encoded.set_boot(moment.boot.count());
  encoded.set_boot_id(moment.boot_id);
  return encoded;
}

Moment decode_moment(const store::v1::Moment& moment) {
  return {.wall = decode_time(moment.wall()),
          .boot = BootTime(moment.boot()),
          .boot_id = moment.boot_id()};
}

std::string event_id(std::string_view sandbox_id, std::uint64_t sequence) {
  return std::string(sandbox_id) + "-" + std::to_string(sequence);
}

namespace {

// Without spec and configuration.
Result<SandboxRecord> decode_state(const SandboxRow& row) {
  SandboxRecord record;
  record.sandbox_id = row.sandbox_id;
  record.created_at = decode_time(row.created_at);
  const auto state = enum_value<v1::SandboxState>(row.state, v1::SandboxState_IsValid);
  if (!state) return unreadable("state " + std::to_string(row.state) + " is unknown");
  record.status = {.state = *state,
                   .changed_at = decode_time(row.state_changed_at),
                   .error_code = std::string(row.error_code),
                   .error_message = std::string(row.error_message)};
  const auto operation = enum_value<Operation>(row.operation, is_operation);
  if (!operation) return unreadable("operation " + std::to_string(row.operation) + " is unknown");
  if (row.operation_attempts < 0 || row.operation_attempts > UINT32_MAX) {
    return unreadable("number of attempts " + std::to_string(row.operation_attempts) +
                      " is out of range");
  }
  record.operation = {.operation = *operation,
                      .reason = std::string(row.operation_reason),
                      .attempts = static_cast<std::uint32_t>(row.operation_attempts)};
  if (row.subnet) record.subnet = std::string(*row.subnet);
  if (row.deleted_at) record.deleted_at = decode_time(*row.deleted_at);
  // If it cannot be decoded, callers use the dates of the record, as for records without it.
  if (store::v1::Moment moment; row.quiet_since && parse(moment, *row.quiet_since)) {
    record.quiet_since = decode_moment(moment);
  }
  return record;
}

}  // namespace

Result<SandboxRecord> decode_sandbox_leniently(const SandboxRow& row) {
  AGBOX_TRY(record, decode_state(row));
  // A failed parse may leave a partial message: do not use it.
  if (!parse(record.spec, row.spec)) record.spec.Clear();
  if (!parse(record.created_with, row.created_with)) record.created_with.Clear();
  return record;
}

Result<SandboxRecord> decode_sandbox(const SandboxRow& row) {
  AGBOX_TRY(record, decode_state(row));
  if (!parse(record.spec, row.spec)) return unreadable("spec is not a CreateSpec");
  if (!parse(record.created_with, row.created_with)) {
    return unreadable("configuration is not a CreatedWith");
  }
  return record;
}

Result<store::v1::Container> decode_container(std::string_view name, std::string_view record) {
  store::v1::Container container;
  if (!parse(container, record)) {
    return unreadable("container \"" + std::string(name) + "\" is not a Container");
  }
  return container;
}

Result<ExecRecord> decode_exec(const ExecRow& row) {
  const std::string name = "exec " + std::string(row.exec_id);
  ExecRecord exec;
  exec.sandbox_id = row.sandbox_id;
  const auto state = enum_value<v1::ExecState>(row.state, v1::ExecState_IsValid);
  if (!state) return unreadable(name + " has the unknown state " + std::to_string(row.state));
  exec.state = *state;
  if (!parse(exec.request, row.request)) return unreadable(name + " has no readable request");
  if (exec.request.exec_id() != row.exec_id)
    return unreadable(name + " has another exec's request");
  if (!parse(exec.record, row.record)) return unreadable(name + " has no readable record");
  return exec;
}

Result<StoredEvent> decode_event(std::string_view sandbox_id, std::int64_t sequence,
                                 std::string_view body) {
  const std::string name = "event " + std::to_string(sequence);
  StoredEvent stored;
  if (!parse(stored.event, body)) return unreadable(name + " is not a SandboxEvent");
  if (sequence < 1 || stored.event.sequence() != static_cast<std::uint64_t>(sequence) ||
      stored.event.sandbox_id() != sandbox_id) {
    return unreadable(name + " does not match its key");
  }
  if (!decode_time(stored.event.occurred_at())) return unreadable(name + " has an impossible time");
  stored.bytes = body;
  return stored;
}

}  // namespace agbox
