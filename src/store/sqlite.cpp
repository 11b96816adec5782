// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite.h"

#include <cerrno>
#include <system_error>

#include "base/check.h"
#include "model/reasons.h"

namespace agbox::sqlite {

bool Failure::is_out_of_space() const {
  // Failures to grow the shared-memory file all have this code.
  if ((code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_SHMSIZE) return true;
  const bool wrote = code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_TRUNCATE ||
                     (code & 0xff) == SQLITE_CANTOPEN;
  return wrote && (error_number == ENOSPC || error_number == EDQUOT);
}

std::string Failure::message() const {
  std::string message = text;
  if (error_number != 0) message += ": " + std::generic_category().message(error_number);
  return message + " (SQLite code " + std::to_string(code) + ")";
}

Error Failure::error(std::string_view what) const {
  const Reason reason = is_out_of_space() ? reason::kResourceExhausted : reason::kStoreFailed;
  return {reason, std::string(what) + ": " + message()};
}

void Statement::bind(int index, std::int64_t value, sqlite3_destructor_type) {
  bind_failed_ |= sqlite3_bind_int64(statement_.get(), index, value) != SQLITE_OK;
}

void Statement::bind(int index, std::string_view text, sqlite3_destructor_type lifetime) {
  // A null pointer would bind NULL, and an empty view may have one.
  const char* data = text.data() == nullptr ? "" : text.data();
  bind_failed_ |= sqlite3_bind_text64(statement_.get(), index, data, text.size(), lifetime,
                                      SQLITE_UTF8) != SQLITE_OK;
}

void Statement::bind(int index, Blob blob, sqlite3_destructor_type lifetime) {
  const char* data = blob.bytes.data() == nullptr ? "" : blob.bytes.data();
  bind_failed_ |=
      sqlite3_bind_blob64(statement_.get(), index, data, blob.bytes.size(), lifetime) != SQLITE_OK;
}

SqlResult<bool> Statement::step() {
  sqlite3* handle = sqlite3_db_handle(statement_.get());
  if (bind_failed_) {
    return std::unexpected(Failure{.code = SQLITE_TOOBIG, .text = "a value is too large to store"});
  }
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return std::unexpected(Failure{.code = sqlite3_extended_errcode(handle),
                                 .error_number = sqlite3_system_errno(handle),
                                 .text = sqlite3_errmsg(handle)});
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  bind_failed_ = false;
}

SqlResult<> Statement::finish() {
  SqlResult<bool> more = true;
  while (more && *more) more = step();
  reset();
  if (!more) return std::unexpected(std::move(more.error()));
  return {};
}

bool Rows::is_null(int column) const {
  return sqlite3_column_type(statement_.statement_.get(), column) == SQLITE_NULL;
}

std::int64_t Rows::integer(int column) const {
  return sqlite3_column_int64(statement_.statement_.get(), column);
}

std::optional<std::int64_t> Rows::optional_integer(int column) const {
  if (is_null(column)) return std::nullopt;
  return integer(column);
}

std::string_view Rows::bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_.statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.statement_.get(), column);
  if (data == nullptr) return {};
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

SqlResult<Connection> Connection::open(const std::filesystem::path& path, Access access,
                                       const std::string& vfs) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE;
  flags |= access == Access::ReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (access == Access::Create) flags |= SQLITE_OPEN_CREATE;
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &handle, flags, vfs.empty() ? nullptr : vfs.c_str());
  AGBOX_CHECK(handle != nullptr, "no memory for a database connection");
  Connection connection(handle);
  if (code != SQLITE_OK) return std::unexpected(connection.failure(code));
  return connection;
}

Failure Connection::failure(int code) const {
  return {.code = code,
          .error_number = sqlite3_system_errno(handle_.get()),
          .text = sqlite3_errmsg(handle_.get())};
}

SqlResult<> Connection::execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return std::unexpected(failure(code));
  return {};
}

SqlResult<Statement> Connection::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return std::unexpected(failure(code));
  return Statement(statement);
}

SqlResult<std::int64_t> Connection::read_integer(std::string_view sql) {
  AGBOX_TRY(statement, prepare(sql));
  Rows rows = statement.query();
  AGBOX_TRY(has_row, rows.next());
  return has_row ? rows.integer(0) : 0;
}

SqlResult<int> Connection::checkpoint(int mode) {
  int pages = 0;
  const int code = sqlite3_wal_checkpoint_v2(handle_.get(), nullptr, mode, &pages, nullptr);
  if (code != SQLITE_OK) return std::unexpected(failure(code));
  return pages;
}

}  // namespace agbox::sqlite
