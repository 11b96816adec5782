// SPDX-License-Identifier: Apache-2.0
// A minimal SQLite wrapper with failures as values: connection, prepared statement, rows. Knows
// nothing of sandboxes. A connection and its statements belong to one thread.
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

// SQLite's error, with the underlying errno if any.
struct Failure {
  int code = SQLITE_OK;  // extended result code
  int error_number = 0;
  std::string text;

  // The disk is full or the user's quota exhausted.
  bool is_out_of_space() const;
  // Another process, for example the sqlite3 shell, holds a lock.
  bool is_busy() const { return (code & 0xff) == SQLITE_BUSY; }
  // The statement violates a constraint; only that statement was undone.
  bool is_constraint() const { return (code & 0xff) == SQLITE_CONSTRAINT; }

  std::string message() const;
  Error error(std::string_view what) const;
};

template <class T = void>
using SqlResult = std::expected<T, Failure>;

// Bytes, not text.
struct Blob {
  std::string_view bytes;
};

class Rows;

class Statement {
 public:
  Statement() = default;

  // Runs it to completion with these values bound.
  template <class... Values>
  SqlResult<> run(const Values&... values) {
    int index = 0;
    (bind(++index, values, SQLITE_STATIC), ...);
    return finish();
  }

  // Starts it; a statement has at most one live Rows.
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

// The rows of a query, one at a time; the destructor ends the query.
class Rows {
 public:
  explicit Rows(Statement& statement) : statement_(statement) {}
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows() { statement_.reset(); }

  // Advances to the next row; false after the last.
  SqlResult<bool> next() { return statement_.step(); }

  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  std::optional<std::int64_t> optional_integer(int column) const;
  // Text or blob; valid until the next call of next().
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
  // `vfs` names a VFS registered with SQLite; empty means the default.
  static SqlResult<Connection> open(const std::filesystem::path& path, Access access,
                                    const std::string& vfs);

  // One or more statements without parameters or rows.
  SqlResult<> execute(const std::string& sql);
  SqlResult<Statement> prepare(std::string_view sql);
  SqlResult<std::int64_t> read_integer(std::string_view sql);

  std::int64_t last_insert_rowid() const { return sqlite3_last_insert_rowid(handle_.get()); }
  std::int64_t rows_changed() const { return sqlite3_changes64(handle_.get()); }
  bool in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }
  sqlite3* handle() const { return handle_.get(); }
  Failure failure(int code) const;

  // Checkpoints the write-ahead log; returns the number of pages in it.
  SqlResult<int> checkpoint(int mode);

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  explicit Connection(sqlite3* handle) : handle_(handle) {}
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace agbox::sqlite
