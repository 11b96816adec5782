// SPDX-License-Identifier: Apache-2.0
// Events: the ordered history of a sandbox. Types and their meaning:
// docs/sandbox_container_lifecycle.md.
#pragma once

#include <agbox/command.h>
#include <agbox/export.h>
#include <agbox/sandbox_info.h>

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace agbox::sdk {

enum class EventType {
  Unspecified = 0,
  SandboxAccepted = 1,
  SandboxPreparing = 2,
  SandboxReady = 3,
  SandboxFailed = 4,
  SandboxStopRequested = 5,
  SandboxStopped = 6,
  SandboxDeleteRequested = 7,
  SandboxDeleted = 8,
  ExecStarted = 9,
  ExecFinished = 10,
  ExecFailed = 11,
  ExecCancelled = 12,
  ServiceReady = 13,
  ServiceFailed = 14,
};
// "SANDBOX_READY"; "UNKNOWN_99" for a type of a newer daemon.
AGBOX_API std::string to_string(EventType type);

struct PhaseDetails {
  std::string phase = {};   // of SandboxPreparing: what is done, such as "materialize"
  std::string reason = {};  // of a stop or delete: such as "idle_ttl"
  std::string error_code = {};
  std::string error_message = {};
};

struct ExecDetails {
  std::string exec_id = {};
  int exit_code = 0;
  ExecState state = ExecState::Unspecified;
  std::string error_code = {};
  std::string error_message = {};
};

struct ServiceDetails {
  std::string name = {};
  std::string error_code = {};
  std::string error_message = {};
};

struct Event {
  std::string sandbox_id = {};
  std::uint64_t sequence = 0;  // 1, 2, 3, ... for each sandbox
  EventType type = EventType::Unspecified;
  std::optional<Time> occurred_at = {};
  SandboxState sandbox_state = SandboxState::Unspecified;  // when it was emitted
  bool is_replay = false;  // it was stored before the subscription began
  // At most one of them.
  std::optional<PhaseDetails> phase = {};
  std::optional<ExecDetails> exec = {};
  std::optional<ServiceDetails> service = {};
};

struct EventOptions {
  // Only events after this one. 0: all of them.
  std::uint64_t after = 0;
  // Ends the sequence with ErrorKind::Cancelled.
  std::stop_token stop = {};
};

struct AllEventsOptions {
  // Where it begins: at the oldest event that is kept, or with those that are recorded from now on.
  bool from_now = false;
  // If not empty, after a message that had this cursor.
  std::string cursor = {};
  // Every label must match. Empty: all sandboxes.
  std::map<std::string, std::string> labels = {};
  // Empty: all types.
  std::vector<EventType> types = {};
  // Ends the sequence with ErrorKind::Cancelled.
  std::stop_token stop = {};
};

// An event of any sandbox.
struct EventMessage {
  // The position after it, to store and to continue from.
  std::string cursor = {};
  // Absent in a message that only advances the cursor.
  std::optional<Event> event = {};
  // All events that were recorded before the subscription came before.
  bool is_caught_up = false;
  // Events before it are missing, because their history was purged.
  bool has_gap = false;
};

}  // namespace agbox::sdk
