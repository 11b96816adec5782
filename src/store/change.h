// SPDX-License-Identifier: Apache-2.0
// What can be written. A Change is a list of mutations that is applied atomically.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "store/records.h"

namespace agbox {

namespace change {

// Reserves the ID forever and creates the record. Refused (SANDBOX_ID_ALREADY_EXISTS) if the ID was
// ever reserved, even by a purged sandbox.
struct CreateSandbox {
  std::string sandbox_id;
  WallTime created_at;
  SandboxStatus status;
  OperationUnderWay operation;
  v1::CreateSpec spec;
  store::v1::CreatedWith created_with;
};

// The next event of event.sandbox_id(). The store assigns its sequence, event_id and position.
struct AppendEvent {
  v1::SandboxEvent event;
};

struct SetStatus {
  std::string sandbox_id;
  SandboxStatus status;
};

struct SetOperation {
  std::string sandbox_id;
  OperationUnderWay operation;
};

// The latest state change or end of an exec.
struct SetQuietSince {
  std::string sandbox_id;
  Moment when;
};

// Refused if another sandbox that is not deleted has it.
struct SetSubnet {
  std::string sandbox_id;
  std::optional<std::string> subnet;
};

// A container was created or started.
struct PutContainer {
  std::string sandbox_id;
  std::string name;  // empty: the primary
  store::v1::Container container;
};

// The sandbox's containers are gone: a create starts over.
struct ForgetContainers {
  std::string sandbox_id;
};

// Reserves request.exec_id() forever and creates a running exec of request.sandbox_id(). Refused
// (EXEC_ID_ALREADY_EXISTS) if the ID was ever reserved, by any sandbox.
struct CreateExec {
  v1::CreateExecRequest request;
  store::v1::Exec record;
};

struct UpdateExec {
  std::string exec_id;
  v1::ExecState state = v1::EXEC_STATE_RUNNING;
  store::v1::Exec record;
};

// The sandbox can now be purged, and its subnet is free.
struct MarkDeleted {
  std::string sandbox_id;
  WallTime deleted_at;
};

// Removes a deleted sandbox with its history and execs. Its IDs stay reserved.
struct Purge {
  std::string sandbox_id;
};

}  // namespace change

using Mutation = std::variant<change::CreateSandbox, change::AppendEvent, change::SetStatus,
                              change::SetOperation, change::SetQuietSince, change::SetSubnet,
                              change::PutContainer, change::ForgetContainers, change::CreateExec,
                              change::UpdateExec, change::MarkDeleted, change::Purge>;

// Whether a change waits for disk space or is refused.
enum class Urgency {
  GoesOn,   // work accepted earlier: waits for space, never dropped
  NewWork,  // a new request: refused with RESOURCE_EXHAUSTED while space is short
};

struct Change {
  std::vector<Mutation> mutations;
  Urgency urgency = Urgency::GoesOn;
};

// The result of a change that is on disk.
struct Committed {
  std::vector<StoredEvent> events;  // of its AppendEvents, in order
};

}  // namespace agbox
