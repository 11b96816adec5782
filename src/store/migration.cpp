// SPDX-License-Identifier: Apache-2.0
#include "store/migration.h"

#include "base/failpoint.h"
#include "model/reasons.h"
#include "store/durable_file.h"
#include "store/schema.h"

namespace agbox {
namespace {

sqlite::SqlResult<> run_step(sqlite::Connection& connection, const Migration& step) {
  AGBOX_TRY_VOID(connection.execute("BEGIN IMMEDIATE"));
  AGBOX_TRY_VOID(connection.execute(step.sql));
  AGBOX_TRY_VOID(connection.execute("PRAGMA user_version = " + std::to_string(step.to_version)));
  AGBOX_FAILPOINT("store.migrate.before_commit");
  return connection.execute("COMMIT");
}

// Moves the log's content into the file, so that the file alone is the whole store.
Result<> truncate_log(sqlite::Connection& connection, const std::filesystem::path& path) {
  if (auto pages = connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE); !pages) {
    return std::unexpected(pages.error().error("checkpoint the store " + path.string()));
  }
  return {};
}

constexpr const char* kToVersion2 = "ALTER TABLE sandbox ADD COLUMN quiet_since BLOB";

// The order of the commits of these events is not known any more: sandbox by sandbox.
constexpr const char* kToVersion3 = R"sql(
CREATE TABLE ordered_event (
  sandbox   INTEGER NOT NULL,
  sequence  INTEGER NOT NULL,
  position  INTEGER NOT NULL,
  body      BLOB NOT NULL,
  PRIMARY KEY (sandbox, sequence)
) STRICT, WITHOUT ROWID;
INSERT INTO ordered_event
  SELECT sandbox, sequence, row_number() OVER (ORDER BY sandbox, sequence), body FROM event;
DROP TABLE event;
ALTER TABLE ordered_event RENAME TO event;
CREATE UNIQUE INDEX event_by_position ON event (position);
ALTER TABLE instance ADD COLUMN purged_through INTEGER NOT NULL DEFAULT 0;
)sql";

}  // namespace

MigrationPlan current_migrations() {
  return {.version = kStoreSchemaVersion,
          .steps = {{.to_version = 2, .sql = kToVersion2}, {.to_version = 3, .sql = kToVersion3}}};
}

Result<> migrate(sqlite::Connection& connection, int fd, const std::filesystem::path& path,
                 const MigrationPlan& plan, const Logger& log) {
  const std::string what = "migrate the store " + path.string();
  auto version = connection.read_integer("PRAGMA user_version");
  if (!version) return std::unexpected(version.error().error(what));
  for (const Migration& step : plan.steps) {
    if (step.to_version <= *version) continue;
    const std::filesystem::path copy = path.string() + ".before-" + std::to_string(step.to_version);
    AGBOX_TRY_VOID(truncate_log(connection, path));
    AGBOX_FAILPOINT("store.migrate.before_copy");
    AGBOX_TRY_VOID(copy_durably(fd, copy));
    AGBOX_FAILPOINT("store.migrate.after_copy");
    if (auto done = run_step(connection, step); !done) {
      return std::unexpected(
          done.error().error(what + " to schema " + std::to_string(step.to_version)));
    }
    AGBOX_FAILPOINT("store.migrate.after_commit");
    // The version in the header, which is checked before SQLite opens the file, must be current.
    AGBOX_TRY_VOID(truncate_log(connection, path));
    AGBOX_FAILPOINT("store.migrate.after_checkpoint");
    log.info("store migrated",
             {{"path", path.string()}, {"schema", step.to_version}, {"copy", copy.string()}});
    *version = step.to_version;
  }
  if (*version != plan.version) {
    return fail(reason::kStoreFailed, "the store " + path.string() + " has schema " +
                                          std::to_string(*version) + ", this agboxd needs schema " +
                                          std::to_string(plan.version));
  }
  return {};
}

}  // namespace agbox
