// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include "model/reasons.h"
#include "store/ballast.h"
#include "store/loader.h"
#include "store/sqlite.h"
#include "store/store_file.h"
#include "store/store_reader.h"
#include "store/store_writer.h"

namespace agbox {
namespace {

using sqlite::Access;
using sqlite::Connection;
using sqlite::SqlResult;

// The log is reused from its start; it keeps this size, because syncing a file that does not grow
// is cheaper.
constexpr const char* kCommonSettings =
    "PRAGMA journal_size_limit = 16777216; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;"
    " PRAGMA cell_size_check = ON; PRAGMA busy_timeout = 5000;";
// Later it tries again by itself, and at shutdown it does not: that has four seconds in all.
constexpr const char* kShortLockWait = "PRAGMA busy_timeout = 500;";

SqlResult<Connection> connect(const StoreOptions& options, Access access) {
  AGBOX_TRY(connection, Connection::open(options.path, access, options.testing.vfs));
  AGBOX_TRY_VOID(connection.execute(kCommonSettings));
  AGBOX_TRY_VOID(connection.execute("PRAGMA synchronous = " + options.testing.synchronous));
  // The first access: recovers the log if the last process was killed.
  AGBOX_TRY_VOID(connection.read_integer("SELECT count(*) FROM sqlite_schema"));
  return connection;
}

// The disk may be full, and even reading needs a little space for the log's index: release the
// ballast for it.
SqlResult<Connection> connect_with_ballast(const StoreOptions& options, Ballast& ballast) {
  auto connection = connect(options, Access::ReadWrite);
  if (connection || !connection.error().is_out_of_space() || !ballast.release()) return connection;
  return connect(options, Access::ReadWrite);
}

// The header has this number too, but after a kill the latest one may be in the log.
Result<> check_schema_is_known(Connection& connection, const StoreOptions& options) {
  const auto version = connection.read_integer("PRAGMA user_version");
  if (!version) return std::unexpected(version.error().error("read the store's schema number"));
  if (*version <= options.testing.migrations.version) return {};
  // Closing must not checkpoint a store that we do not understand.
  sqlite3_db_config(connection.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return std::unexpected(newer_schema(options.path, *version, options.testing.migrations.version));
}

}  // namespace

Store::Store() = default;
Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::open(StoreOptions options) {
  Ballast ballast(options.path.string() + ".ballast", options.ballast_bytes);
  std::unique_ptr<Store> store(new Store());
  AGBOX_TRY(file, StoreFile::open(options.path, options.testing.migrations.version, ballast,
                                  options.testing.vfs));
  store->file_ = std::make_unique<StoreFile>(std::move(file));
  const int fd = store->file_->fd();

  const std::string what = "open the store " + options.path.string();
  auto writing = connect_with_ballast(options, ballast);
  if (!writing) return std::unexpected(writing.error().error(what));
  AGBOX_TRY_VOID(check_schema_is_known(*writing, options));
  AGBOX_TRY_VOID(migrate(*writing, fd, options.path, options.testing.migrations, options.log));
  if (auto set = writing->execute(kShortLockWait); !set) {
    return std::unexpected(set.error().error(what));
  }
  auto instance_id = load_instance_id(*writing);
  if (!instance_id) return std::unexpected(instance_id.error().error(what));
  if (instance_id->empty()) return fail(reason::kStoreFailed, what + ": it has no instance id");
  store->instance_id_ = std::move(*instance_id);

  auto reading = connect(options, Access::ReadOnly);
  if (!reading) return std::unexpected(reading.error().error(what));
  auto reader = StoreReader::start(std::move(*reading), options.post);
  if (!reader) return std::unexpected(reader.error().error(what));
  store->reader_ = std::move(*reader);

  auto writer = StoreWriter::start({.connection = std::move(*writing),
                                    .ballast = ballast,
                                    .log_path = options.path.string() + "-wal",
                                    .clock = options.clock,
                                    .post = options.post,
                                    .log = options.log});
  if (!writer) return std::unexpected(writer.error().error(what));
  store->writer_ = std::move(*writer);
  store->options_ = std::make_unique<StoreOptions>(std::move(options));
  return store;
}

Result<LoadedSandboxes> Store::load() {
  // A separate connection: the other two belong to their threads.
  const std::string what = "load the store " + options_->path.string();
  auto connection = connect(*options_, Access::ReadOnly);
  if (!connection) return std::unexpected(connection.error().error(what));
  auto loaded = load_sandboxes(*connection);
  if (!loaded) return std::unexpected(loaded.error().error(what));
  return std::move(*loaded);
}

void Store::append(Change change, std::function<void(Result<Committed>)> on_committed) {
  writer_->append(std::move(change), std::move(on_committed));
}

void Store::read_events(std::string sandbox_id, std::uint64_t after, std::size_t limit_count,
                        std::size_t limit_bytes, std::function<void(Result<EventPage>)> done) {
  reader_->answer(std::move(done), [=](StoreReader& reader) {
    return reader.event_page(sandbox_id, after, limit_count, limit_bytes);
  });
}

void Store::read_all_events(std::uint64_t after, std::uint64_t until, std::size_t limit_count,
                            std::size_t limit_bytes,
                            std::function<void(Result<AllEventsPage>)> done) {
  reader_->answer(std::move(done), [=](StoreReader& reader) {
    return reader.all_events_page(after, until, limit_count, limit_bytes);
  });
}

void Store::read_exec(std::string exec_id, std::function<void(Result<ExecRecord>)> done) {
  reader_->answer(std::move(done), [=](StoreReader& reader) { return reader.exec(exec_id); });
}

void Store::read_execs(std::string sandbox_id, std::uint64_t after, std::size_t limit_count,
                       std::size_t limit_bytes, std::function<void(Result<ExecPage>)> done) {
  reader_->answer(std::move(done), [=](StoreReader& reader) {
    return reader.exec_page(sandbox_id, after, limit_count, limit_bytes);
  });
}

void Store::read_purged(std::vector<std::string> sandbox_ids,
                        std::function<void(Result<std::vector<std::string>>)> done) {
  reader_->answer(std::move(done), [=](StoreReader& reader) { return reader.purged(sandbox_ids); });
}

const std::filesystem::path& Store::path() const {
  return options_->path;
}

void Store::stop_waiting() {
  writer_->stop_waiting();
}

SpaceStatus Store::space() const {
  return writer_->space();
}

}  // namespace agbox
