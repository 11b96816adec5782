// SPDX-License-Identifier: Apache-2.0
// What can be written. A Change is a list of mutations that becomes durable as one: after a crash
// either all of it is there or nothing.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "store/records.h"

namespace agbox {

namespace change {

// Takes the id for ever and makes the record. Refused (SANDBOX_ID_ALREADY_EXISTS) where the id was
// ever taken, also by a sandbox that is long purged.
struct CreateSandbox {
  std::string sandbox_id;
  WallTime created_at;
  SandboxStatus status;
  OperationUnderWay operation;
  v1::CreateSpec spec;
  store::v1::CreatedWith created_with;
};

// The next event of event.sandbox_id(). The store gives it its sequence and event_id.
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

// The latest change of its state or end of an exec.
struct SetQuietSince {
  std::string sandbox_id;
  Moment when;
};

// Refused where another sandbox that is not deleted has it.
struct SetSubnet {
  std::string sandbox_id;
  std::optional<std::string> subnet;
};

// A container was made, or has a new start.
struct PutContainer {
  std::string sandbox_id;
  std::string name;  // empty: the primary
  store::v1::Container container;
};

// The sandbox's containers are gone: a create that starts over.
struct ForgetContainers {
  std::string sandbox_id;
};

// Takes request.exec_id() for ever and makes a running exec of request.sandbox_id(). Refused
// (EXEC_ID_ALREADY_EXISTS) where the id was ever taken, by whichever sandbox.
struct CreateExec {
  v1::CreateExecRequest request;
  store::v1::Exec record;
};

struct UpdateExec {
  std::string exec_id;
  v1::ExecState state = v1::EXEC_STATE_RUNNING;
  store::v1::Exec record;
};

// From here the history waits for its purge, and the subnet is free.
struct MarkDeleted {
  std::string sandbox_id;
  WallTime deleted_at;
};

// Removes a deleted sandbox with its history and execs. Its ids stay taken.
struct Purge {
  std::string sandbox_id;
};

}  // namespace change

using Mutation = std::variant<change::CreateSandbox, change::AppendEvent, change::SetStatus,
                              change::SetOperation, change::SetQuietSince, change::SetSubnet,
                              change::PutContainer, change::ForgetContainers, change::CreateExec,
                              change::UpdateExec, change::MarkDeleted, change::Purge>;

// Whether a change may wait for room on the disk, or has to be turned away.
enum class Urgency {
  GoesOn,   // work that was accepted before: it waits for room, and is never dropped
  NewWork,  // a client asks for more: refused with RESOURCE_EXHAUSTED while room is short
};

struct Change {
  std::vector<Mutation> mutations;
  Urgency urgency = Urgency::GoesOn;
};

// What became of a change, once it is on disk.
struct Committed {
  std::vector<StoredEvent> events;  // those of its AppendEvents, in their order
};

}  // namespace agbox
