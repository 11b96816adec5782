// SPDX-License-Identifier: Apache-2.0
// Disk failures other than a full disk abort the process: nothing was acknowledged, and the next
// start continues from what is on disk.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <atomic>

#include "model/reasons.h"
#include "unit/store/full_disk.h"
#include "unit/store/store_fixture.h"

namespace agbox {
namespace {

class DurabilityTest : public StoreTest {};

// The system's VFS, but syncing the log can be made to fail.
namespace failing_disk {

std::atomic<bool> syncs_fail = false;
sqlite3_io_methods methods;
const sqlite3_io_methods* real_methods = nullptr;
sqlite3_vfs vfs;

int sync(sqlite3_file* file, int flags) {
  return syncs_fail ? SQLITE_IOERR_FSYNC : real_methods->xSync(file, flags);
}

int open(sqlite3_vfs*, sqlite3_filename name, sqlite3_file* file, int flags, int* out) {
  sqlite3_vfs* system = sqlite3_vfs_find("unix");
  const int code = system->xOpen(system, name, file, flags, out);
  if (code != SQLITE_OK || (flags & SQLITE_OPEN_WAL) == 0 || file->pMethods == &methods)
    return code;
  real_methods = file->pMethods;
  methods = *real_methods;
  methods.xSync = sync;
  file->pMethods = &methods;
  return SQLITE_OK;
}

void install() {
  vfs = *sqlite3_vfs_find("unix");
  vfs.zName = "failing-disk";
  vfs.xOpen = open;
  vfs.pNext = nullptr;
  sqlite3_vfs_register(&vfs, 0);
}

}  // namespace failing_disk

TEST_F(DurabilityTest, AFailedSyncAbortsBeforeAnythingIsAcknowledged) {
  EXPECT_DEATH(
      {
        failing_disk::install();
        StoreOptions failing = options();
        failing.testing.vfs = "failing-disk";
        store_ = std::move(*Store::open(std::move(failing)));
        if (!append(create("s-01"))) std::_Exit(3);
        failing_disk::syncs_fail = true;
        static_cast<void>(append(create("s-02")));
        std::_Exit(4);
      },
      "store: commit failed: .*disk I/O error");
}

TEST_F(DurabilityTest, WaitsForAnotherProcesssLock) {
  open();
  ASSERT_TRUE(append(create("s-01")));
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  bool is_answered = false;
  store().append(Change{{event("s-01")}}, [&](const Result<Committed>& result) {
    is_answered = true;
    EXPECT_TRUE(result.has_value());
  });
  EXPECT_TRUE(events("s-01")->events.empty());  // reads continue
  sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr);
  sqlite3_close(other);
  mailbox_.run_until([&] { return is_answered; });
  EXPECT_EQ(events("s-01")->events.size(), 1U);
}

TEST_F(DurabilityTest, DoesNotWaitLongForAnotherProcesssLockAtShutdown) {
  open();
  ASSERT_TRUE(append(create("s-01")));
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  std::optional<Reason> refusal;
  store().append(Change{{event("s-01")}}, [&](const Result<Committed>& result) {
    refusal = result ? reason::kInternal : result.error().reason();
  });
  const auto begun = std::chrono::steady_clock::now();
  store().stop_waiting();
  mailbox_.run_until([&] { return refusal.has_value(); });
  store_.reset();
  // A shutdown has four seconds in all.
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(3500));
  EXPECT_EQ(refusal, reason::kShuttingDown);
  sqlite3_close(other);
}

TEST_F(DurabilityTest, DoesNotWaitForAFullDiskAtShutdown) {
  StoreOptions on_full_disk = options();
  on_full_disk.testing.vfs = full_disk::install();
  store_ = std::move(*Store::open(std::move(on_full_disk)));
  ASSERT_TRUE(append(create("s-01")));
  full_disk::is_full = true;
  std::vector<Reason> refusals;
  const auto note = [&](const Result<Committed>& result) {
    refusals.push_back(result ? reason::kInternal : result.error().reason());
  };
  store().append(Change{{event("s-01")}}, note);
  store().stop_waiting();
  mailbox_.run_until([&] { return refusals.size() == 1; });
  store().append(Change{{event("s-01")}}, note);
  mailbox_.run_until([&] { return refusals.size() == 2; });
  EXPECT_THAT(refusals, testing::Each(reason::kShuttingDown));
  full_disk::is_full = false;
  EXPECT_TRUE(append(event("s-01"))) << "what can be written is";
}

}  // namespace
}  // namespace agbox
