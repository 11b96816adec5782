// SPDX-License-Identifier: Apache-2.0
#include "store/migration.h"

#include <gmock/gmock.h>

#include <fstream>

#include "model/reasons.h"
#include "store/schema.h"
#include "unit/store/store_fixture.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

class MigrationTest : public StoreTest {
 protected:
  // A future schema with two additions.
  MigrationPlan two_steps() {
    return {.version = kStoreSchemaVersion + 2,
            .steps = {{.to_version = kStoreSchemaVersion + 1,
                       .sql = "ALTER TABLE sandbox ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'"},
                      {.to_version = kStoreSchemaVersion + 2,
                       .sql = "UPDATE sandbox SET colour = 'blue' WHERE sandbox_id = 's-01'"}}};
  }
  Result<std::unique_ptr<Store>> open_with(const MigrationPlan& plan) {
    StoreOptions with = options();
    with.testing.migrations = plan;
    return Store::open(std::move(with));
  }
  fs::path copy_before(std::uint32_t version) const {
    return path_.string() + ".before-" + std::to_string(version);
  }
  static std::int64_t number_in(const fs::path& path, std::string_view sql) {
    auto connection = sqlite::Connection::open(path, sqlite::Access::ReadOnly, "");
    EXPECT_TRUE(connection.has_value());
    return connection->read_integer(sql).value_or(-1);
  }
};

TEST_F(MigrationTest, EachStepKeepsABackup) {
  open();
  ASSERT_TRUE(append(Change{{create("s-01"), event("s-01"), create("s-02")}}));
  store_.reset();
  {
    auto migrated = open_with(two_steps());
    ASSERT_TRUE(migrated.has_value()) << migrated.error().message();
    store_ = std::move(*migrated);
    EXPECT_THAT(events("s-01")->events, SizeIs(1));
    EXPECT_TRUE(append(create("s-03")));
    store_.reset();
  }
  EXPECT_EQ(number_in(path_, "SELECT count(*) FROM sandbox WHERE colour = 'red'"), 2);
  EXPECT_EQ(number_in(path_, "PRAGMA user_version"), kStoreSchemaVersion + 2);
  EXPECT_EQ(number_in(copy_before(kStoreSchemaVersion + 1), "PRAGMA user_version"),
            kStoreSchemaVersion);
  EXPECT_EQ(number_in(copy_before(kStoreSchemaVersion + 2),
                      "SELECT count(*) FROM sandbox WHERE colour = 'red'"),
            2);
  // The backup is a complete store of the older schema.
  fs::rename(copy_before(kStoreSchemaVersion + 1), path_);
  open();
  EXPECT_THAT(events("s-01")->events, SizeIs(1));
}

TEST_F(MigrationTest, AMigratedStoreIsRefusedByTheOlderDaemon) {
  open();
  store_.reset();
  ASSERT_TRUE(open_with(two_steps()).has_value());
  const auto older = Store::open(options());
  ASSERT_FALSE(older.has_value());
  const fs::path backup = copy_before(kStoreSchemaVersion + 1);
  EXPECT_THAT(older.error().message(),
              AllOf(HasSubstr("newer agboxd"), HasSubstr("(" + backup.string() + ")")));
  // Which it can open, although the newer one was two steps ahead.
  fs::rename(backup, path_);
  EXPECT_TRUE(Store::open(options()).has_value());
}

TEST_F(MigrationTest, AFailedStepLeavesTheOldSchema) {
  open();
  ASSERT_TRUE(append(create("s-01")));
  store_.reset();
  MigrationPlan plan = two_steps();
  plan.steps[1].sql = "UPDATE sandbox SET colour = 'blue'; UPDATE no_such_table SET a = 1";
  const auto migrated = open_with(plan);
  ASSERT_FALSE(migrated.has_value());
  EXPECT_THAT(migrated.error().message(),
              AllOf(HasSubstr("migrate the store"), HasSubstr("no such table")));
  EXPECT_EQ(number_in(path_, "PRAGMA user_version"), kStoreSchemaVersion + 1);
  EXPECT_EQ(number_in(path_, "SELECT count(*) FROM sandbox WHERE colour = 'red'"), 1);
}

// tests/data/store/schema-<n>.db were written by daemons of that schema (store_sample): they must
// always open with their content.
TEST_F(MigrationTest, AStoreOfEverySchemaStillOpens) {
  for (std::uint32_t version = 1; version <= kStoreSchemaVersion; ++version) {
    const fs::path sample = fs::path(AGBOX_SOURCE_DIR) / "tests/data/store" /
                            ("schema-" + std::to_string(version) + ".db");
    fs::create_directories(path_.parent_path());
    fs::copy_file(sample, path_, fs::copy_options::overwrite_existing);
    open();
    EXPECT_EQ(store().instance_id(), "5a3c1f0e-7d52-4c53-9a51-0d1c8b6f2e77");
    const auto loaded = store().load();
    ASSERT_TRUE(loaded.has_value());
    EXPECT_THAT(loaded->broken, SizeIs(0));
    ASSERT_THAT(loaded->sandboxes, SizeIs(2));
    const SandboxRecord& ready = loaded->sandboxes[0];
    EXPECT_EQ(ready.sandbox_id, "sample-ready");
    EXPECT_EQ(ready.status.state, v1::SANDBOX_STATE_READY);
    EXPECT_EQ(ready.subnet, "10.201.0.0/28");
    EXPECT_EQ(ready.spec.image(), "sample:1");
    EXPECT_EQ(ready.created_with.engine_id(), "sample-engine");
    EXPECT_EQ(ready.containers.at("").start_count(), 1U);
    EXPECT_THAT(ready.running_execs, SizeIs(1));
    EXPECT_EQ(ready.newest_sequence, 5U);
    const Moment quiet_since{.wall = WallTime(std::chrono::seconds(1'700'000'004)),
                             .boot = BootTime(4),
                             .boot_id = "sample-boot"};
    EXPECT_EQ(ready.quiet_since, version == 1 ? std::optional<Moment>() : quiet_since);
    EXPECT_EQ(events("sample-ready")->events.at(2).event.event_id(), "sample-ready-3");
    EXPECT_TRUE(loaded->sandboxes[1].deleted_at.has_value());
    const auto ordered =
        ask<AllEventsPage>([&](auto done) { store().read_all_events(0, 100, 100, 1 << 20, done); });
    EXPECT_THAT(ordered->unreadable, SizeIs(0));
    std::string order;
    for (const StoredEvent& stored : ordered->events) {
      order += std::to_string(stored.position) + " " + stored.event.event_id() + ", ";
    }
    EXPECT_EQ(order,
              "1 sample-ready-1, 2 sample-ready-2, 3 sample-ready-3, 4 sample-ready-4, "
              "5 sample-ready-5, 6 sample-deleted-1, ");
    // Since schema 3 a purged event keeps its position.
    EXPECT_EQ(loaded->newest_position, version < 3 ? 6U : 7U);
    EXPECT_EQ(append(create("sample-purged")).error().reason(), reason::kSandboxIdAlreadyExists);
    EXPECT_TRUE(append(create("sample-new")));
    store_.reset();
  }
}

}  // namespace
}  // namespace agbox
