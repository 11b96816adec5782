// SPDX-License-Identifier: Apache-2.0
#include "store/change_writer.h"

#include "base/check.h"
#include "base/failpoint.h"
#include "model/reasons.h"
#include "store/decode.h"
#include "store/schema.h"

namespace agbox {
namespace {

using sqlite::Blob;
using sqlite::Failure;
using sqlite::SqlResult;

// Protobuf serializes text that is not UTF-8 but refuses to parse it: such a message must not reach
// the disk, where it would break its sandbox at the next start.
template <class Message>
Result<std::string> serialize(const Message& message) {
  std::string bytes = message.SerializeAsString();
  if (Message again; again.ParseFromString(bytes)) return bytes;
  return fail(reason::kInternal, "the store refuses a " + message.GetTypeName() +
                                     " that cannot be read back: it has text that is not UTF-8");
}

}  // namespace

SqlResult<ChangeWriter> ChangeWriter::prepare(sqlite::Connection& connection, const Clock& clock) {
  ChangeWriter writer(connection, clock);
  Statements& sql = writer.sql_;
  const std::pair<sqlite::Statement*, std::string_view> texts[] = {
      {&sql.savepoint, "SAVEPOINT change"},
      {&sql.release, "RELEASE change"},
      {&sql.roll_back, "ROLLBACK TO change"},
      {&sql.reserve_sandbox,
       "INSERT INTO sandbox_reservation VALUES (?, ?) ON CONFLICT DO NOTHING"},
      {&sql.reserve_exec, "INSERT INTO exec_reservation VALUES (?, ?) ON CONFLICT DO NOTHING"},
      {&sql.find_sandbox, "SELECT number FROM sandbox WHERE sandbox_id = ?"},
      {&sql.find_deleted_sandbox,
       "SELECT number FROM sandbox WHERE sandbox_id = ? AND deleted_at IS NOT NULL"},
      {&sql.newest_sequence, "SELECT max(sequence) FROM event WHERE sandbox = ?"},
      {&sql.newest_position, kNewestPosition},
      {&sql.insert_sandbox,
       "INSERT INTO sandbox (sandbox_id, created_at, state, state_changed_at, error_code,"
       " error_message, operation, operation_reason, operation_attempts)"
       " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"},
      {&sql.insert_origin, "INSERT INTO sandbox_origin VALUES (?, ?, ?)"},
      {&sql.insert_event, "INSERT INTO event VALUES (?, ?, ?, ?)"},
      {&sql.insert_exec, "INSERT INTO exec VALUES (?, ?, ?, NULL, ?, ?)"},
      {&sql.put_container,
       "INSERT INTO container VALUES (?, ?, ?)"
       " ON CONFLICT (sandbox, name) DO UPDATE SET record = excluded.record"},
      {&sql.set_status,
       "UPDATE sandbox SET state = ?, state_changed_at = ?, error_code = ?, error_message = ?"
       " WHERE sandbox_id = ?"},
      {&sql.set_operation,
       "UPDATE sandbox SET operation = ?, operation_reason = ?, operation_attempts = ?"
       " WHERE sandbox_id = ?"},
      {&sql.set_quiet_since, "UPDATE sandbox SET quiet_since = ? WHERE sandbox_id = ?"},
      {&sql.set_subnet, "UPDATE sandbox SET subnet = ? WHERE sandbox_id = ?"},
      {&sql.set_deleted, "UPDATE sandbox SET deleted_at = ? WHERE sandbox_id = ?"},
      {&sql.update_exec, "UPDATE exec SET state = ?, ended_at = ?, record = ? WHERE exec_id = ?"},
      {&sql.newest_position_of, "SELECT max(position) FROM event WHERE sandbox = ?"},
      {&sql.raise_purged_through, "UPDATE instance SET purged_through = max(purged_through, ?)"},
      {&sql.delete_events, "DELETE FROM event WHERE sandbox = ?"},
      {&sql.delete_execs, "DELETE FROM exec WHERE sandbox = ?"},
      {&sql.delete_containers, "DELETE FROM container WHERE sandbox = ?"},
      {&sql.delete_origin, "DELETE FROM sandbox_origin WHERE sandbox = ?"},
      {&sql.delete_sandbox, "DELETE FROM sandbox WHERE number = ?"},
  };
  for (const auto& [statement, text] : texts) {
    AGBOX_TRY(prepared, connection.prepare(text));
    *statement = std::move(prepared);
  }
  return writer;
}

SqlResult<Result<Committed>> ChangeWriter::write(const Change& change) {
  AGBOX_FAILPOINT("store.before_apply");
  AGBOX_TRY_VOID(sql_.savepoint.run());
  Committed committed;
  const Step<> outcome = write_all(change, committed);
  if (outcome) {
    AGBOX_TRY_VOID(sql_.release.run());
    AGBOX_FAILPOINT("store.after_apply");
    return Result<Committed>(std::move(committed));
  }
  // A statement that violates a constraint or is too large concerns this change alone.
  const auto* failure = std::get_if<Failure>(&outcome.error());
  if (failure != nullptr && !failure->is_constraint() && failure->code != SQLITE_TOOBIG) {
    return std::unexpected(*failure);
  }
  AGBOX_TRY_VOID(sql_.roll_back.run());
  AGBOX_TRY_VOID(sql_.release.run());
  AGBOX_FAILPOINT("store.after_refusal");
  if (failure != nullptr) {
    return Result<Committed>(std::unexpected(failure->error("the store refuses this change")));
  }
  return Result<Committed>(std::unexpected(std::get<Error>(outcome.error())));
}

ChangeWriter::Step<> ChangeWriter::write_all(const Change& change, Committed& committed) {
  for (const Mutation& mutation : change.mutations) {
    AGBOX_TRY_VOID(
        std::visit([&](const auto& concrete) { return write_one(concrete, committed); }, mutation));
    AGBOX_FAILPOINT("store.between_mutations");
  }
  return {};
}

ChangeWriter::Step<std::int64_t> ChangeWriter::sandbox_number(const std::string& sandbox_id) {
  sqlite::Rows rows = sql_.find_sandbox.query(sandbox_id);
  AGBOX_TRY(found, rows.next());
  if (!found) return std::unexpected(sandbox_not_found(sandbox_id));
  return rows.integer(0);
}

ChangeWriter::Step<std::int64_t> ChangeWriter::newest_position() {
  sqlite::Rows rows = sql_.newest_position.query();
  AGBOX_TRY(found, rows.next());
  AGBOX_CHECK(found, "a query without a table has one row");
  return rows.integer(0);
}

ChangeWriter::Step<> ChangeWriter::expect_sandbox_changed(const std::string& sandbox_id) const {
  if (connection_.rows_changed() == 0) return std::unexpected(sandbox_not_found(sandbox_id));
  return {};
}

ChangeWriter::Step<> ChangeWriter::write_one(const change::CreateSandbox& create, Committed&) {
  AGBOX_TRY_VOID(sql_.reserve_sandbox.run(create.sandbox_id, encode_time(clock_.wall_now())));
  if (connection_.rows_changed() == 0) {
    return std::unexpected(Error(reason::kSandboxIdAlreadyExists,
                                 "sandbox_id " + create.sandbox_id + " already exists",
                                 {{"sandbox_id", create.sandbox_id}}));
  }
  const SandboxStatus& status = create.status;
  AGBOX_TRY_VOID(sql_.insert_sandbox.run(
      create.sandbox_id, encode_time(create.created_at), std::int64_t{status.state},
      encode_time(status.changed_at), status.error_code, status.error_message,
      static_cast<std::int64_t>(create.operation.operation), create.operation.reason,
      std::int64_t{create.operation.attempts}));
  AGBOX_TRY(spec, serialize(create.spec));
  AGBOX_TRY(created_with, serialize(create.created_with));
  AGBOX_TRY_VOID(
      sql_.insert_origin.run(connection_.last_insert_rowid(), Blob{spec}, Blob{created_with}));
  return {};
}

// The sequence and the position are assigned inside the transaction from what the table holds, so
// that a refused or lost change cannot leave a gap.
ChangeWriter::Step<> ChangeWriter::write_one(const change::AppendEvent& append,
                                             Committed& committed) {
  StoredEvent stored{.event = append.event, .bytes = {}, .position = 0};
  AGBOX_TRY(number, sandbox_number(append.event.sandbox_id()));
  std::int64_t sequence = 1;
  {
    sqlite::Rows rows = sql_.newest_sequence.query(number);
    AGBOX_TRY(found, rows.next());
    if (found) sequence = rows.integer(0) + 1;
  }
  stored.event.set_sequence(static_cast<std::uint64_t>(sequence));
  stored.event.set_event_id(event_id(stored.event.sandbox_id(), stored.event.sequence()));
  AGBOX_TRY(bytes, serialize(stored.event));
  stored.bytes = std::move(bytes);
  AGBOX_TRY(newest, newest_position());
  stored.position = static_cast<std::uint64_t>(newest + 1);
  AGBOX_TRY_VOID(sql_.insert_event.run(number, sequence, newest + 1, Blob{stored.bytes}));
  committed.events.push_back(std::move(stored));
  return {};
}

ChangeWriter::Step<> ChangeWriter::write_one(const change::SetStatus& set, Committed&) {
  const SandboxStatus& status = set.status;
  AGBOX_TRY_VOID(sql_.set_status.run(std::int64_t{status.state}, encode_time(status.changed_at),
                                     status.error_code, status.error_message, set.sandbox_id));
  return expect_sandbox_changed(set.sandbox_id);
}

ChangeWriter::Step<> ChangeWriter::write_one(const change::SetOperation& set, Committed&) {
  AGBOX_TRY_VOID(sql_.set_operation.run(static_cast<std::int64_t>(set.operation.operation),
                                        set.operation.reason, std::int64_t{set.operation.attempts},
                                        set.sandbox_id));
  return expect_sandbox_changed(set.sandbox_id);
}

ChangeWriter::Step<> ChangeWriter::write_one(const change::SetQuietSince& set, Committed&) {
  AGBOX_TRY(moment, serialize(encode_moment(set.when)));
  AGBOX_TRY_VOID(sql_.set_quiet_since.run(Blob{moment}, set.sandbox_id));
  return expect_sandbox_changed(set.sandbox_id);
}

ChangeWriter::Step<> ChangeWriter::write_one(const change::SetSubnet& set, Committed&) {
  const auto done = sql_.set_subnet.run(set.subnet, set.sandbox_id);
  if (!done && done.error().is_constraint()) {
    return std::unexpected(Error(reason::kInternal, "subnet " + set.subnet.value_or("") +
                                                        " for sandbox " + set.sandbox_id +
                                                        " belongs to another sandbox"));
  }
  AGBOX_TRY_VOID(done);
  return expect_sandbox_changed(set.sandbox_id);
}

ChangeWriter::Step<> ChangeWriter::write_one(const change::PutContainer& put, Committed&) {
  AGBOX_TRY(number, sandbox_number(put.sandbox_id));
  AGBOX_TRY(record, serialize(put.container));
  AGBOX_TRY_VOID(sql_.put_container.run(number, put.name, Blob{record}));
  return {};
}

ChangeWriter::Step<> ChangeWriter::write_one(const change::ForgetContainers& forget, Committed&) {
  AGBOX_TRY(number, sandbox_number(forget.sandbox_id));
  AGBOX_TRY_VOID(sql_.delete_containers.run(number));
  return {};
}

ChangeWriter::Step<> ChangeWriter::write_one(const change::CreateExec& create, Committed&) {
  const std::string& exec_id = create.request.exec_id();
  AGBOX_TRY(number, sandbox_number(create.request.sandbox_id()));
  AGBOX_TRY_VOID(sql_.reserve_exec.run(exec_id, encode_time(clock_.wall_now())));
  if (connection_.rows_changed() == 0) {
    return std::unexpected(Error(reason::kExecIdAlreadyExists,
                                 "exec_id " + exec_id + " already exists", {{"exec_id", exec_id}}));
  }
  AGBOX_TRY(request, serialize(create.request));
  AGBOX_TRY(record, serialize(create.record));
  AGBOX_TRY_VOID(sql_.insert_exec.run(exec_id, number, std::int64_t{v1::EXEC_STATE_RUNNING},
                                      Blob{request}, Blob{record}));
  return {};
}

ChangeWriter::Step<> ChangeWriter::write_one(const change::UpdateExec& update, Committed&) {
  std::optional<std::int64_t> ended_at;
  if (update.record.has_ended_at()) {
    const auto time = decode_time(update.record.ended_at());
    if (!time) {
      return std::unexpected(
          Error(reason::kInternal, "exec " + update.exec_id + " ended at an impossible time"));
    }
    ended_at = encode_time(*time);
  }
  AGBOX_TRY(record, serialize(update.record));
  AGBOX_TRY_VOID(
      sql_.update_exec.run(std::int64_t{update.state}, ended_at, Blob{record}, update.exec_id));
  if (connection_.rows_changed() == 0) return std::unexpected(exec_not_found(update.exec_id));
  return {};
}

ChangeWriter::Step<> ChangeWriter::write_one(const change::MarkDeleted& mark, Committed&) {
  AGBOX_TRY_VOID(sql_.set_deleted.run(encode_time(mark.deleted_at), mark.sandbox_id));
  return expect_sandbox_changed(mark.sandbox_id);
}

ChangeWriter::Step<> ChangeWriter::write_one(const change::Purge& purge, Committed&) {
  std::int64_t number = 0;
  {
    sqlite::Rows rows = sql_.find_deleted_sandbox.query(purge.sandbox_id);
    AGBOX_TRY(found, rows.next());
    if (!found) {
      return std::unexpected(Error(reason::kSandboxNotFound,
                                   "there is no deleted sandbox " + purge.sandbox_id + " to purge",
                                   {{"sandbox_id", purge.sandbox_id}}));
    }
    number = rows.integer(0);
  }
  std::int64_t newest = 0;
  {
    sqlite::Rows rows = sql_.newest_position_of.query(number);
    AGBOX_TRY(found, rows.next());
    if (found) newest = rows.integer(0);
  }
  AGBOX_FAILPOINT("store.purge.before_delete");
  AGBOX_TRY_VOID(sql_.raise_purged_through.run(newest));
  AGBOX_TRY_VOID(sql_.delete_events.run(number));
  AGBOX_FAILPOINT("store.purge.after_events");
  AGBOX_TRY_VOID(sql_.delete_execs.run(number));
  AGBOX_TRY_VOID(sql_.delete_containers.run(number));
  AGBOX_TRY_VOID(sql_.delete_origin.run(number));
  AGBOX_TRY_VOID(sql_.delete_sandbox.run(number));
  AGBOX_FAILPOINT("store.purge.after_delete");
  return {};
}

}  // namespace agbox
