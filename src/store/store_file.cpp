// SPDX-License-Identifier: Apache-2.0
#include "store/store_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/failpoint.h"
#include "base/uuid.h"
#include "model/reasons.h"
#include "store/durable_file.h"
#include "store/schema.h"
#include "store/sqlite.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeaderSize = 100;
constexpr std::size_t kUserVersionOffset = 60;
constexpr std::size_t kApplicationIdOffset = 68;
constexpr std::string_view kSqliteMagic("SQLite format 3\0", 16);

std::uint32_t big_endian(std::span<const unsigned char> bytes, std::size_t offset) {
  return std::uint32_t{bytes[offset]} << 24 | std::uint32_t{bytes[offset + 1]} << 16 |
         std::uint32_t{bytes[offset + 2]} << 8 | std::uint32_t{bytes[offset + 3]};
}

// bbolt's first page: a 16-byte page header, then this number in the machine's byte order.
bool looks_like_bbolt(std::span<const unsigned char> header) {
  constexpr std::array<unsigned char, 4> kMagic = {0xED, 0xDA, 0x0C, 0xED};
  return header.size() >= 20 && std::ranges::equal(header.subspan(16, 4), kMagic);
}

Error refused(const fs::path& path, const std::string& why) {
  return {reason::kStoreFailed, "the file " + path.string() + " " + why +
                                    "; it was left untouched: move it away and agboxd creates "
                                    "a new store"};
}

Error cannot_open(const fs::path& path, int error_number) {
  const std::string what = "open the store " + path.string();
  switch (error_number) {
    case ELOOP:
      return {
          reason::kStoreFailed,
          what + ": it is a symbolic link, which agboxd does not follow; replace it with the file"};
    case EROFS:
      return {reason::kStoreFailed, what +
                                        ": it is on a read-only file system; make it writable, or "
                                        "set XDG_DATA_HOME to a directory that is"};
    case EISDIR:
      return {reason::kStoreFailed, what + ": it is a directory; move it away"};
    default:
      return errno_error(what, error_number);
  }
}

Error in_use(const fs::path& path) {
  return {reason::kStoreFailed, "the store " + path.string() +
                                    " is in use by another agboxd; stop that one, or give this one "
                                    "another XDG_DATA_HOME"};
}

Result<> lock(int fd, const fs::path& path) {
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return {};
  if (errno == EWOULDBLOCK) return std::unexpected(in_use(path));
  return std::unexpected(errno_error("lock the store " + path.string(), errno));
}

// Does the path still refer to the open file?
bool is_still_at(int fd, const fs::path& path) {
  struct stat ours{};
  struct stat there{};
  return ::fstat(fd, &ours) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

bool file_exists(const fs::path& path) {
  struct stat found{};
  return ::lstat(path.c_str(), &found) == 0;
}

Result<> check_open_file(int fd, const fs::path& path, std::uint32_t newest_schema) {
  struct stat found{};
  if (::fstat(fd, &found) != 0) return std::unexpected(cannot_open(path, errno));
  if (!S_ISREG(found.st_mode)) return std::unexpected(refused(path, "is not a regular file"));
  std::array<unsigned char, kHeaderSize> header{};
  const ssize_t length = ::pread(fd, header.data(), header.size(), 0);
  if (length < 0) return std::unexpected(errno_error("read the store " + path.string(), errno));
  return check_store_header(std::span(header).first(static_cast<std::size_t>(length)), path,
                            newest_schema);
}

// SQLite's own files next to a database of this name.
void remove_side_files(const fs::path& path) {
  for (const char* suffix : {"-journal", "-wal", "-shm"}) {
    ::unlink((path.string() + suffix).c_str());
  }
}

fs::path unfinished_name(const fs::path& path) {
  return path.string() + ".new";
}

void remove_unfinished(const fs::path& unfinished) {
  remove_side_files(unfinished);
  ::unlink(unfinished.c_str());
}

sqlite::SqlResult<> fill_new_store(const fs::path& path, const std::string& vfs) {
  AGBOX_TRY(connection, sqlite::Connection::open(path, sqlite::Access::Create, vfs));
  // A kill during creation leaves a file with a temporary name, and the next start begins again:
  // there is nothing to roll back, so no journal.
  AGBOX_TRY_VOID(connection.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = FULL"));
  AGBOX_TRY_VOID(create_schema(connection, random_uuid()));
  AGBOX_FAILPOINT("store.create.after_schema");
  return connection.execute("PRAGMA journal_mode = WAL");
}

Result<> publish(const UniqueFd& fd, const fs::path& unfinished, const fs::path& path) {
  if (::fsync(fd.get()) != 0) return std::unexpected(errno_error("sync " + path.string(), errno));
  AGBOX_FAILPOINT("store.create.before_rename");
  if (::rename(unfinished.c_str(), path.c_str()) != 0) {
    return std::unexpected(errno_error("rename " + unfinished.string(), errno));
  }
  AGBOX_FAILPOINT("store.create.after_rename");
  return sync_directory(path.parent_path());
}

}  // namespace

Result<> check_store_header(std::span<const unsigned char> header, const fs::path& path,
                            std::uint32_t newest_schema) {
  if (looks_like_bbolt(header)) {
    return std::unexpected(
        refused(path, "is a bbolt database, perhaps of another program named agboxd"));
  }
  if (header.size() < kHeaderSize ||
      std::memcmp(header.data(), kSqliteMagic.data(), kSqliteMagic.size()) != 0) {
    return std::unexpected(refused(path, "is not a store of agboxd (not a SQLite database)"));
  }
  if (big_endian(header, kApplicationIdOffset) != kStoreApplicationId) {
    return std::unexpected(refused(path, "is a SQLite database of another program"));
  }
  const std::uint32_t schema = big_endian(header, kUserVersionOffset);
  if (schema == 0) return std::unexpected(refused(path, "has no schema number"));
  if (schema > newest_schema) {
    return std::unexpected(newer_schema(path, schema, newest_schema));
  }
  return {};
}

Error newer_schema(const fs::path& path, std::int64_t schema, std::uint32_t newest_schema) {
  return {reason::kStoreFailed,
          "the store " + path.string() + " has schema " + std::to_string(schema) +
              " and was made by a newer agboxd, this one knows up to schema " +
              std::to_string(newest_schema) +
              "; it was left untouched: install the newer agboxd again, or restore the backup that "
              "it made before it changed the schema (" +
              path.string() + ".before-" + std::to_string(newest_schema + 1) + ")"};
}

Result<std::optional<StoreFile>> StoreFile::open_existing(const fs::path& path,
                                                          std::uint32_t newest_schema) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd && errno == ENOENT) return std::nullopt;
  if (!fd) return std::unexpected(cannot_open(path, errno));
  AGBOX_TRY_VOID(lock(fd.get(), path));
  AGBOX_TRY_VOID(check_open_file(fd.get(), path, newest_schema));
  if (::access(path.parent_path().c_str(), W_OK | X_OK) != 0) {
    return std::unexpected(errno_error(
        "open the store " + path.string() + ": its directory must be writable too", errno));
  }
  remove_unfinished(unfinished_name(path));
  return StoreFile(std::move(fd));
}

Result<std::optional<StoreFile>> StoreFile::create(const fs::path& path, Ballast& ballast,
                                                   const std::string& vfs) {
  // In this order: another daemon that has just created the store has its log only after the store.
  if (const fs::path log = path.string() + "-wal"; file_exists(log) && !file_exists(path)) {
    return fail(reason::kStoreFailed, "the store " + path.string() + " is missing, but its log " +
                                          log.string() +
                                          " exists; restore the store, or remove the log");
  }
  const fs::path unfinished = unfinished_name(path);
  UniqueFd fd(
      ::open(unfinished.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!fd) return std::unexpected(cannot_open(unfinished, errno).within("create a new store"));
  AGBOX_TRY_VOID(lock(fd.get(), path));
  // Another process may have finished in between: start over.
  if (!is_still_at(fd.get(), unfinished)) return std::nullopt;
  if (file_exists(path)) {
    ::unlink(unfinished.c_str());
    return std::nullopt;
  }
  AGBOX_FAILPOINT("store.create.before_schema");

  auto make = [&]() -> Result<> {
    AGBOX_TRY_VOID(ballast.make());
    remove_side_files(unfinished);
    if (::ftruncate(fd.get(), 0) != 0) {
      return std::unexpected(errno_error("truncate " + unfinished.string(), errno));
    }
    if (auto filled = fill_new_store(unfinished, vfs); !filled) {
      return std::unexpected(filled.error().error("write " + unfinished.string()));
    }
    return publish(fd, unfinished, path);
  };
  if (auto made = make(); !made) {
    ballast.release();
    remove_unfinished(unfinished);
    return std::unexpected(made.error().within("create a new store"));
  }
  return StoreFile(std::move(fd));
}

Result<StoreFile> StoreFile::open(const fs::path& path, std::uint32_t newest_schema,
                                  Ballast& ballast, const std::string& vfs) {
  AGBOX_TRY_VOID(make_private_directories(path.parent_path()));
  // Several daemons may start at once without a store: one creates it, the others find it locked.
  // Each round means that another process made progress.
  for (int round = 0; round < 100; ++round) {
    AGBOX_TRY(existing, open_existing(path, newest_schema));
    if (existing) return std::move(*existing);
    AGBOX_TRY(made, create(path, ballast, vfs));
    if (made) return std::move(*made);
  }
  return std::unexpected(in_use(path));
}

}  // namespace agbox
