// SPDX-License-Identifier: Apache-2.0
// What the store returns: sandboxes, containers, execs and events as committed.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agbox/store/v1/record.pb.h"
#include "agbox/v1/event.pb.h"
#include "agbox/v1/exec.pb.h"
#include "agbox/v1/sandbox.pb.h"
#include "agbox/v1/service.pb.h"
#include "agbox/v1/spec.pb.h"
#include "base/clock.h"

namespace agbox {

// The operation in progress; after a crash it is continued. The numbers are stored.
enum class Operation {
  None = 0,
  Creating = 1,
  Resuming = 2,
  Stopping = 3,
  Deleting = 4,
  CleaningUp = 5,  // after a failed create, which may have left objects in the engine
};

struct OperationUnderWay {
  Operation operation = Operation::None;
  std::string reason;          // for example stop_requested or idle_ttl
  std::uint32_t attempts = 0;  // how often it was started
};

// A sandbox's state as clients see it.
struct SandboxStatus {
  v1::SandboxState state = v1::SANDBOX_STATE_PENDING;
  WallTime changed_at;
  std::string error_code;
  std::string error_message;
};

struct ExecRecord {
  std::string sandbox_id;
  v1::ExecState state = v1::EXEC_STATE_RUNNING;
  v1::CreateExecRequest request;  // with the exec_id
  store::v1::Exec record;
};

struct SandboxRecord {
  std::string sandbox_id;
  WallTime created_at;
  SandboxStatus status;
  OperationUnderWay operation;
  std::optional<std::string> subnet;
  std::optional<WallTime> deleted_at;
  v1::CreateSpec spec;
  store::v1::CreatedWith created_with;
  std::map<std::string, store::v1::Container> containers;  // by name; the primary's is empty
  std::vector<ExecRecord> running_execs;
  std::optional<WallTime> last_exec_ended_at;
  // The latest state change or end of an exec; absent in records of older daemons.
  std::optional<Moment> quiet_since;
  // The newest event; sequences have no gaps.
  std::uint64_t newest_sequence = 0;
  WallTime newest_event_at;
};

struct ExecPage {
  std::vector<ExecRecord> execs;
  std::uint64_t last = 0;  // cursor for the next page
  bool has_more = false;
};

// A sandbox whose records cannot be decoded. Other sandboxes are not affected.
struct BrokenSandbox {
  std::string sandbox_id;
  std::string why;
  std::optional<std::string> subnet{};  // stays reserved
  // The readable part, if it includes at least state and history: such a sandbox can be shown as
  // failed and deleted.
  std::optional<SandboxRecord> rest{};
};

struct LoadedSandboxes {
  std::vector<SandboxRecord> sandboxes;  // oldest first
  std::vector<BrokenSandbox> broken;
  std::uint64_t newest_position = 0;  // of an event, also of one that was purged since
};

struct StoredEvent {
  v1::SandboxEvent event;
  std::string bytes;           // exactly what is on disk
  std::uint64_t position = 0;  // among the events of all sandboxes; 0: not stored
};

struct EventPage {
  std::vector<StoredEvent> events;
  std::uint64_t newest_sequence = 0;  // of the sandbox, when the page was read
};

// Events of all sandboxes, by position.
struct AllEventsPage {
  std::vector<StoredEvent> events;
  // The page has everything up to this position that is stored and can be decoded.
  std::uint64_t last = 0;
  std::vector<std::string> unreadable;  // why, one each
};

}  // namespace agbox
