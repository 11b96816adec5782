// SPDX-License-Identifier: Apache-2.0
// Applies Changes within an open transaction. A refused change is rolled back as a whole and does
// not affect the others.
#pragma once

#include "base/clock.h"
#include "store/change.h"
#include "store/sqlite.h"

namespace agbox {

class ChangeWriter {
 public:
  static sqlite::SqlResult<ChangeWriter> prepare(sqlite::Connection& connection,
                                                 const Clock& clock);

  // The outer error is a disk failure and concerns the whole transaction; the inner one refuses
  // this change alone.
  sqlite::SqlResult<Result<Committed>> write(const Change& change);

 private:
  struct Statements {
    sqlite::Statement savepoint, release, roll_back;
    sqlite::Statement reserve_sandbox, reserve_exec;
    sqlite::Statement find_sandbox, find_deleted_sandbox, newest_sequence, newest_position;
    sqlite::Statement insert_sandbox, insert_origin, insert_event, insert_exec, put_container;
    sqlite::Statement set_status, set_operation, set_quiet_since, set_subnet, set_deleted,
        update_exec;
    sqlite::Statement newest_position_of, raise_purged_through;
    sqlite::Statement delete_events, delete_execs, delete_containers, delete_origin, delete_sandbox;
  };
  // A refusal or a disk failure.
  using Stop = std::variant<Error, sqlite::Failure>;
  template <class T = void>
  using Step = std::expected<T, Stop>;

  ChangeWriter(sqlite::Connection& connection, const Clock& clock)
      : connection_(connection), clock_(clock) {}

  Step<> write_all(const Change& change, Committed& committed);
  Step<> write_one(const change::CreateSandbox& create, Committed&);
  Step<> write_one(const change::AppendEvent& append, Committed& committed);
  Step<> write_one(const change::SetStatus& set, Committed&);
  Step<> write_one(const change::SetOperation& set, Committed&);
  Step<> write_one(const change::SetQuietSince& set, Committed&);
  Step<> write_one(const change::SetSubnet& set, Committed&);
  Step<> write_one(const change::PutContainer& put, Committed&);
  Step<> write_one(const change::ForgetContainers& forget, Committed&);
  Step<> write_one(const change::CreateExec& create, Committed&);
  Step<> write_one(const change::UpdateExec& update, Committed&);
  Step<> write_one(const change::MarkDeleted& mark, Committed&);
  Step<> write_one(const change::Purge& purge, Committed&);

  Step<std::int64_t> sandbox_number(const std::string& sandbox_id);
  Step<std::int64_t> newest_position();
  Step<> expect_sandbox_changed(const std::string& sandbox_id) const;

  sqlite::Connection& connection_;
  const Clock& clock_;
  Statements sql_;
};

}  // namespace agbox
