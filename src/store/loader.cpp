// SPDX-License-Identifier: Apache-2.0
#include "store/loader.h"

#include "store/decode.h"
#include "store/schema.h"

namespace agbox {
namespace {

using sqlite::Rows;
using sqlite::SqlResult;
using sqlite::Statement;

constexpr std::string_view kSandboxes =
    "SELECT number, sandbox_id, created_at, state, state_changed_at, error_code, error_message,"
    " operation, operation_reason, operation_attempts, subnet, deleted_at, spec, created_with,"
    " quiet_since"
    " FROM sandbox LEFT JOIN sandbox_origin ON sandbox_origin.sandbox = sandbox.number"
    " ORDER BY number";

SandboxRow sandbox_row(const Rows& rows) {
  SandboxRow row{.sandbox_id = rows.bytes(1),
                 .created_at = rows.integer(2),
                 .state = rows.integer(3),
                 .state_changed_at = rows.integer(4),
                 .error_code = rows.bytes(5),
                 .error_message = rows.bytes(6),
                 .operation = rows.integer(7),
                 .operation_reason = rows.bytes(8),
                 .operation_attempts = rows.integer(9),
                 .subnet = {},
                 .deleted_at = rows.optional_integer(11),
                 .quiet_since = {},
                 .spec = rows.bytes(12),
                 .created_with = rows.bytes(13)};
  if (!rows.is_null(10)) row.subnet = rows.bytes(10);
  if (!rows.is_null(14)) row.quiet_since = rows.bytes(14);
  return row;
}

// The statements that complete one sandbox. The inner result reports undecodable data, the outer
// one a database failure.
class SandboxLoader {
 public:
  static SqlResult<SandboxLoader> prepare(sqlite::Connection& connection) {
    SandboxLoader loader;
    const std::pair<Statement*, std::string_view> texts[] = {
        {&loader.containers_, "SELECT name, record FROM container WHERE sandbox = ?"},
        {&loader.running_execs_,
         "SELECT exec_id, state, request, record FROM exec"
         " WHERE sandbox = ? AND ended_at IS NULL ORDER BY exec_id"},
        {&loader.last_exec_end_, "SELECT max(ended_at) FROM exec WHERE sandbox = ?"},
        {&loader.newest_event_,
         "SELECT sequence, body FROM event WHERE sandbox = ? ORDER BY sequence DESC LIMIT 1"},
    };
    for (const auto& [statement, text] : texts) {
      AGBOX_TRY(prepared, connection.prepare(text));
      *statement = std::move(prepared);
    }
    return loader;
  }

  SqlResult<Result<>> complete(std::int64_t number, SandboxRecord& sandbox) {
    for (const auto part : {&SandboxLoader::add_containers, &SandboxLoader::add_running_execs,
                            &SandboxLoader::add_last_exec_end, &SandboxLoader::add_newest_event}) {
      AGBOX_TRY(added, (this->*part)(number, sandbox));
      if (!added) return added;
    }
    return Result<>();
  }

  // The readable part of a broken sandbox; nullopt if its history cannot be continued.
  SqlResult<std::optional<SandboxRecord>> rest_of(std::int64_t number, const SandboxRow& row) {
    auto rest = decode_sandbox_leniently(row);
    if (!rest) return std::nullopt;
    AGBOX_TRY(history, add_newest_event(number, *rest));
    if (!history) return std::nullopt;
    AGBOX_TRY(containers, add_containers(number, *rest));
    if (!containers) rest->containers.clear();
    AGBOX_TRY(execs, add_running_execs(number, *rest));  // up to the first undecodable one
    static_cast<void>(execs);
    return std::move(*rest);
  }

 private:
  SqlResult<Result<>> add_containers(std::int64_t number, SandboxRecord& sandbox) {
    Rows rows = containers_.query(number);
    while (true) {
      AGBOX_TRY(found, rows.next());
      if (!found) return Result<>();
      auto container = decode_container(rows.bytes(0), rows.bytes(1));
      if (!container) return Result<>(std::unexpected(container.error()));
      sandbox.containers.emplace(rows.string(0), std::move(*container));
    }
  }

  SqlResult<Result<>> add_running_execs(std::int64_t number, SandboxRecord& sandbox) {
    Rows rows = running_execs_.query(number);
    while (true) {
      AGBOX_TRY(found, rows.next());
      if (!found) return Result<>();
      auto exec = decode_exec({.exec_id = rows.bytes(0),
                               .sandbox_id = sandbox.sandbox_id,
                               .state = rows.integer(1),
                               .request = rows.bytes(2),
                               .record = rows.bytes(3)});
      if (!exec) return Result<>(std::unexpected(exec.error()));
      sandbox.running_execs.push_back(std::move(*exec));
    }
  }

  SqlResult<Result<>> add_last_exec_end(std::int64_t number, SandboxRecord& sandbox) {
    Rows rows = last_exec_end_.query(number);
    AGBOX_TRY(found, rows.next());
    if (found && !rows.is_null(0)) sandbox.last_exec_ended_at = decode_time(rows.integer(0));
    return Result<>();
  }

  SqlResult<Result<>> add_newest_event(std::int64_t number, SandboxRecord& sandbox) {
    Rows rows = newest_event_.query(number);
    AGBOX_TRY(found, rows.next());
    if (!found) return Result<>();
    auto newest = decode_event(sandbox.sandbox_id, rows.integer(0), rows.bytes(1));
    if (!newest) return Result<>(std::unexpected(newest.error()));
    sandbox.newest_sequence = newest->event.sequence();
    sandbox.newest_event_at = decode_time(newest->event.occurred_at()).value_or(WallTime());
    return Result<>();
  }

  Statement containers_, running_execs_, last_exec_end_, newest_event_;
};

}  // namespace

SqlResult<LoadedSandboxes> load_sandboxes(sqlite::Connection& connection) {
  LoadedSandboxes loaded;
  AGBOX_TRY(newest_position, connection.read_integer(kNewestPosition));
  loaded.newest_position = static_cast<std::uint64_t>(newest_position);
  AGBOX_TRY(loader, SandboxLoader::prepare(connection));
  AGBOX_TRY(statement, connection.prepare(kSandboxes));
  Rows rows = statement.query();
  while (true) {
    AGBOX_TRY(found, rows.next());
    if (!found) return loaded;
    Result<SandboxRecord> sandbox = decode_sandbox(sandbox_row(rows));
    if (sandbox) {
      AGBOX_TRY(completed, loader.complete(rows.integer(0), *sandbox));
      if (!completed) sandbox = std::unexpected(completed.error());
    }
    if (sandbox) {
      loaded.sandboxes.push_back(std::move(*sandbox));
    } else {
      const SandboxRow row = sandbox_row(rows);
      AGBOX_TRY(rest, loader.rest_of(rows.integer(0), row));
      loaded.broken.push_back(
          {.sandbox_id = rows.string(1),
           .why = sandbox.error().message(),
           .subnet = row.subnet.transform([](auto text) { return std::string(text); }),
           .rest = std::move(rest)});
    }
  }
}

SqlResult<std::string> load_instance_id(sqlite::Connection& connection) {
  AGBOX_TRY(statement, connection.prepare("SELECT instance_id FROM instance"));
  Rows rows = statement.query();
  AGBOX_TRY(found, rows.next());
  return found ? rows.string(0) : std::string();
}

}  // namespace agbox
