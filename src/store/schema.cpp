// SPDX-License-Identifier: Apache-2.0
#include "store/schema.h"

namespace agbox {
namespace {

//   store ──┬─ instance             one row: the instance ID, a label of all our engine objects,
//   and
//           │                       the newest position that was purged
//           │
//           ├─ sandbox_reservation  every ID ever used; rows are never deleted, so an ID is never
//           ├─ exec_reservation     reused, whatever is purged. Two namespaces
//           │
//           └─ sandbox              one small row each, written often: the basis of decisions
//               ├─ sandbox_origin   written once: spec and configuration
//               ├─ container        by name ('' is the primary), with its latest start
//               ├─ event            the history: sequence 1, 2, 3 … without gaps; the position
//               orders │                   the events of all sandboxes, and is never reused └─ exec
//               commands, running and ended
//
// A purge removes a sandbox's row with everything below it, in one transaction, and keeps the
// reservations. Times are nanoseconds since 1970 (UTC). Blobs are serialized protobuf messages,
// named in the comments. STRICT, so that SQLite enforces the column types.
constexpr const char* kTables = R"sql(
CREATE TABLE instance (
  only_row     INTEGER PRIMARY KEY CHECK (only_row = 1),
  instance_id  TEXT NOT NULL,
  purged_through  INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE sandbox_reservation (
  sandbox_id   TEXT PRIMARY KEY,
  reserved_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE exec_reservation (
  exec_id      TEXT PRIMARY KEY,
  reserved_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sandbox (
  number              INTEGER PRIMARY KEY,        -- the short key of the tables below
  sandbox_id          TEXT NOT NULL UNIQUE,
  created_at          INTEGER NOT NULL,
  -- as clients see it; written together with the event that says so
  state               INTEGER NOT NULL,           -- agbox.v1.SandboxState
  state_changed_at    INTEGER NOT NULL,
  error_code          TEXT NOT NULL,
  error_message       TEXT NOT NULL,
  -- what is under way; this, not the state, is what a restart goes on with
  operation           INTEGER NOT NULL,           -- Operation in records.h
  operation_reason    TEXT NOT NULL,
  operation_attempts  INTEGER NOT NULL,
  subnet              TEXT,
  deleted_at          INTEGER,
  -- the latest change of its state or end of an exec: from here its time to live is counted
  quiet_since         BLOB                        -- agbox.store.v1.Moment
) STRICT;
CREATE UNIQUE INDEX sandbox_by_subnet ON sandbox (subnet)
  WHERE subnet IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX sandbox_by_deletion ON sandbox (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE sandbox_origin (
  sandbox       INTEGER PRIMARY KEY,
  spec          BLOB NOT NULL,                    -- agbox.v1.CreateSpec, resolved
  created_with  BLOB NOT NULL                     -- agbox.store.v1.CreatedWith
) STRICT;

CREATE TABLE container (
  sandbox  INTEGER NOT NULL,
  name     TEXT NOT NULL,
  record   BLOB NOT NULL,                         -- agbox.store.v1.Container
  PRIMARY KEY (sandbox, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE event (
  sandbox   INTEGER NOT NULL,
  sequence  INTEGER NOT NULL,
  position  INTEGER NOT NULL,
  body      BLOB NOT NULL,                        -- agbox.v1.SandboxEvent
  PRIMARY KEY (sandbox, sequence)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX event_by_position ON event (position);

CREATE TABLE exec (
  exec_id   TEXT PRIMARY KEY,
  sandbox   INTEGER NOT NULL,
  state     INTEGER NOT NULL,                     -- agbox.v1.ExecState
  ended_at  INTEGER,                              -- NULL while it runs
  request   BLOB NOT NULL,                        -- agbox.v1.CreateExecRequest
  record    BLOB NOT NULL                         -- agbox.store.v1.Exec
) STRICT;
CREATE INDEX exec_by_sandbox ON exec (sandbox, ended_at);
)sql";

}  // namespace

sqlite::SqlResult<> create_schema(sqlite::Connection& connection, const std::string& instance_id) {
  AGBOX_TRY_VOID(connection.execute("BEGIN IMMEDIATE"));
  AGBOX_TRY_VOID(connection.execute(kTables));
  AGBOX_TRY(insert,
            connection.prepare("INSERT INTO instance (only_row, instance_id) VALUES (1, ?)"));
  AGBOX_TRY_VOID(insert.run(instance_id));
  AGBOX_TRY_VOID(
      connection.execute("PRAGMA application_id = " + std::to_string(kStoreApplicationId) +
                         "; PRAGMA user_version = " + std::to_string(kStoreSchemaVersion)));
  return connection.execute("COMMIT");
}

}  // namespace agbox
