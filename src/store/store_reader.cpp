// SPDX-License-Identifier: Apache-2.0
#include "store/store_reader.h"

#include <algorithm>

#include "base/check.h"
#include "model/reasons.h"
#include "store/decode.h"

namespace agbox {
namespace {

using sqlite::Rows;
using sqlite::SqlResult;

// Maps SQLite failures to store errors.
template <class T>
Result<T> reading(SqlResult<T> result) {
  if (!result) return std::unexpected(result.error().error("read the store"));
  return std::move(*result);
}

ExecRow exec_row(const Rows& rows) {
  return {.exec_id = rows.bytes(0),
          .sandbox_id = rows.bytes(1),
          .state = rows.integer(2),
          .request = rows.bytes(3),
          .record = rows.bytes(4)};
}

}  // namespace

SqlResult<std::unique_ptr<StoreReader>> StoreReader::start(sqlite::Connection connection,
                                                           Post post) {
  std::unique_ptr<StoreReader> reader(new StoreReader(std::move(connection), std::move(post)));
  const std::pair<sqlite::Statement*, std::string_view> texts[] = {
      {&reader->begin_, "BEGIN"},
      {&reader->end_, "COMMIT"},
      {&reader->find_sandbox_, "SELECT number FROM sandbox WHERE sandbox_id = ?"},
      {&reader->newest_, "SELECT max(sequence) FROM event WHERE sandbox = ?"},
      {&reader->page_,
       "SELECT sequence, body, position FROM event WHERE sandbox = ? AND sequence > ?"
       " ORDER BY sequence"},
      {&reader->all_events_,
       "SELECT sequence, body, position, sandbox_id FROM event INDEXED BY event_by_position"
       " JOIN sandbox ON sandbox.number = event.sandbox WHERE position > ? AND position <= ?"
       " ORDER BY position"},
      {&reader->exec_,
       "SELECT exec_id, sandbox_id, exec.state, request, record FROM exec"
       " JOIN sandbox ON sandbox.number = exec.sandbox WHERE exec_id = ?"},
      // Row numbers grow with every exec. Sorting them alone avoids reading the requests.
      {&reader->exec_numbers_,
       "SELECT rowid FROM exec INDEXED BY exec_by_sandbox WHERE sandbox = ? AND rowid > ?"
       " ORDER BY rowid"},
      {&reader->exec_by_number_,
       "SELECT exec_id, sandbox_id, exec.state, request, record FROM exec"
       " JOIN sandbox ON sandbox.number = exec.sandbox WHERE exec.rowid = ?"},
      {&reader->purged_,
       "SELECT 1 FROM sandbox_reservation WHERE sandbox_id = ?1"
       " AND NOT EXISTS (SELECT 1 FROM sandbox WHERE sandbox.sandbox_id = ?1)"},
  };
  for (const auto& [statement, text] : texts) {
    AGBOX_TRY(prepared, reader->connection_.prepare(text));
    *statement = std::move(prepared);
  }
  return reader;
}

Result<> StoreReader::run(sqlite::Statement& statement) {
  if (auto done = statement.run(); !done) {
    return std::unexpected(done.error().error("read the store"));
  }
  return {};
}

Result<std::int64_t> StoreReader::sandbox_number(const std::string& sandbox_id) {
  Rows rows = find_sandbox_.query(sandbox_id);
  AGBOX_TRY(found, reading(rows.next()));
  if (!found) return std::unexpected(sandbox_not_found(sandbox_id));
  return rows.integer(0);
}

Result<EventPage> StoreReader::event_page(const std::string& sandbox_id, std::uint64_t after,
                                          std::size_t limit_count, std::size_t limit_bytes) {
  AGBOX_TRY(number, sandbox_number(sandbox_id));
  EventPage page;
  {
    Rows rows = newest_.query(number);
    AGBOX_TRY(found, reading(rows.next()));
    if (found) page.newest_sequence = static_cast<std::uint64_t>(rows.integer(0));
  }
  if (after >= page.newest_sequence) return page;
  std::size_t bytes = 0;
  Rows rows = page_.query(number, static_cast<std::int64_t>(after));
  while (page.events.empty() || page.events.size() < limit_count) {
    AGBOX_TRY(found, reading(rows.next()));
    if (!found) break;
    bytes += rows.bytes(1).size();
    if (!page.events.empty() && bytes > limit_bytes) break;
    auto event = decode_event(sandbox_id, rows.integer(0), rows.bytes(1));
    if (!event) return std::unexpected(event.error().within("sandbox " + sandbox_id));
    event->position = static_cast<std::uint64_t>(rows.integer(2));
    page.events.push_back(std::move(*event));
  }
  return page;
}

Result<AllEventsPage> StoreReader::all_events_page(std::uint64_t after, std::uint64_t until,
                                                   std::size_t limit_count,
                                                   std::size_t limit_bytes) {
  AllEventsPage page;
  page.last = after;
  std::size_t count = 0;
  std::size_t bytes = 0;
  Rows rows = all_events_.query(static_cast<std::int64_t>(after), static_cast<std::int64_t>(until));
  while (true) {
    AGBOX_TRY(found, reading(rows.next()));
    if (!found) break;
    bytes += rows.bytes(1).size();
    if (++count > 1 && (count > limit_count || bytes > limit_bytes)) return page;
    page.last = static_cast<std::uint64_t>(rows.integer(2));
    const std::string sandbox_id = rows.string(3);
    auto event = decode_event(sandbox_id, rows.integer(0), rows.bytes(1));
    // It affects no other: the stream goes on with the next.
    if (!event) {
      page.unreadable.push_back(event.error().within("sandbox " + sandbox_id).message());
      continue;
    }
    event->position = page.last;
    page.events.push_back(std::move(*event));
  }
  page.last = std::max(after, until);
  return page;
}

Result<ExecRecord> StoreReader::exec(const std::string& exec_id) {
  Rows rows = exec_.query(exec_id);
  AGBOX_TRY(found, reading(rows.next()));
  if (!found) return std::unexpected(exec_not_found(exec_id));
  return decode_exec(exec_row(rows));
}

Result<ExecPage> StoreReader::exec_page(const std::string& sandbox_id, std::uint64_t after,
                                        std::size_t limit_count, std::size_t limit_bytes) {
  AGBOX_TRY(number, sandbox_number(sandbox_id));
  ExecPage page;
  page.last = after;
  std::size_t bytes = 0;
  Rows numbers = exec_numbers_.query(number, static_cast<std::int64_t>(after));
  while (true) {
    AGBOX_TRY(found, reading(numbers.next()));
    if (!found) return page;
    const std::int64_t exec_number = numbers.integer(0);
    Rows rows = exec_by_number_.query(exec_number);
    AGBOX_TRY(found_exec, reading(rows.next()));
    AGBOX_CHECK(found_exec, "both queries use one snapshot");
    bytes += rows.bytes(3).size() + rows.bytes(4).size();
    page.has_more =
        !page.execs.empty() && (page.execs.size() >= limit_count || bytes > limit_bytes);
    if (page.has_more) return page;
    AGBOX_TRY(exec, decode_exec(exec_row(rows)));
    page.execs.push_back(std::move(exec));
    page.last = static_cast<std::uint64_t>(exec_number);
  }
}

Result<std::vector<std::string>> StoreReader::purged(const std::vector<std::string>& sandbox_ids) {
  std::vector<std::string> purged;
  for (const std::string& sandbox_id : sandbox_ids) {
    Rows rows = purged_.query(sandbox_id);
    AGBOX_TRY(found, reading(rows.next()));
    if (found) purged.push_back(sandbox_id);
  }
  return purged;
}

}  // namespace agbox
