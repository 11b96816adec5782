// SPDX-License-Identifier: Apache-2.0
// The little of SQLite that the store needs, with failures as values: a connection, a prepared
// statement, the rows of a query. Knows nothing of sandboxes. A connection and its statements
// belong to one thread.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace agbox::sqlite {

// What SQLite said, and the errno below it where there was one.
struct Failure {
  int code = SQLITE_OK;  // extended result code
  int error_number = 0;
  std::string text;

  // No room on the disk, or in the user's quota.
  bool is_out_of_space() const;
  // Somebody else, for example a person with the sqlite3 program, holds a lock.
  bool is_busy() const { return (code & 0xff) == SQLITE_BUSY; }
  // The statement would break a rule of the schema; nothing but that statement was undone.
  bool is_constraint() const { return (code & 0xff) == SQLITE_CONSTRAINT; }

  std::string sentence() const;
  Error error(std::string_view what) const;
};

template <class T = void>
using SqlResult = std::expected<T, Failure>;

// Bytes, as opposed to text.
struct Blob {
  std::string_view bytes;
};

class Rows;

class Statement {
 public:
  Statement() = default;

  // Runs it to the end with these values in place of the ?s.
  template <class... Values>
  SqlResult<> run(const Values&... values) {
    int index = 0;
    (bind(++index, values, SQLITE_STATIC), ...);
    return finish();
  }

  // Starts it; at most one Rows of a statement is alive at a time.
  template <class... Values>
  Rows query(const Values&... values);

 private:
  friend class Connection;
  friend class Rows;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  void bind(int index, std::int64_t value, sqlite3_destructor_type lifetime);
  void bind(int index, std::string_view text, sqlite3_destructor_type lifetime);
  void bind(int index, Blob blob, sqlite3_destructor_type lifetime);
  template <class Value>
  void bind(int index, const std::optional<Value>& value, sqlite3_destructor_type lifetime) {
    if (value) bind(index, *value, lifetime);  // unbound is NULL
  }
  SqlResult<> finish();
  SqlResult<bool> step();
  void reset();

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  bool bind_failed_ = false;
};

// The rows of a query, one at a time; ends the query when it goes away.
class Rows {
 public:
  explicit Rows(Statement& statement) : statement_(statement) {}
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows() { statement_.reset(); }

  // Moves to the next row; false after the last.
  SqlResult<bool> next() { return statement_.step(); }

  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  std::optional<std::int64_t> optional_integer(int column) const;
  // Valid until the next next(): text and blobs alike, byte by byte.
  std::string_view bytes(int column) const;
  std::string string(int column) const { return std::string(bytes(column)); }

 private:
  Statement& statement_;
};

template <class... Values>
Rows Statement::query(const Values&... values) {
  int index = 0;
  (bind(++index, values, SQLITE_TRANSIENT), ...);
  return Rows(*this);
}

enum class Access { ReadWrite, ReadOnly, Create };

class Connection {
 public:
  // `vfs` names one that was registered with SQLite; empty means the system's own.
  static SqlResult<Connection> open(const std::filesystem::path& path, Access access,
                                    const std::string& vfs);

  // One or several statements without values and without rows.
  SqlResult<> execute(const std::string& sql);
  SqlResult<Statement> prepare(std::string_view sql);
  SqlResult<std::int64_t> read_integer(std::string_view sql);

  std::int64_t last_insert_rowid() const { return sqlite3_last_insert_rowid(handle_.get()); }
  std::int64_t rows_changed() const { return sqlite3_changes64(handle_.get()); }
  bool in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }
  sqlite3* handle() const { return handle_.get(); }
  Failure failure(int code) const;

  // Copies what the write-ahead log holds into the database file; how many pages the log has.
  SqlResult<int> checkpoint(int mode);

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  explicit Connection(sqlite3* handle) : handle_(handle) {}
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace agbox::sqlite
