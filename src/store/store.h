// SPDX-License-Identifier: Apache-2.0
// The daemon's durable state: one SQLite file.
//
//   append()   applies a Change atomically, in call order. The callback runs once the change is
//              on disk, so what is published from it cannot be lost in a power cut.
//   read_…()   reads pages of the same file; never waits for a write.
//   load()     reads everything at start.
//
// Methods may be called on any thread; callbacks run where StoreOptions::post puts them. A write
// that fails for any reason but a full disk aborts the process: memory would be ahead of the disk,
// and the next start recovers from that.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "store/change.h"
#include "store/migration.h"
#include "store/records.h"

namespace agbox {

using Post = std::function<void(std::function<void()>)>;

// For tests only.
struct StoreTestOptions {
  std::string vfs;                   // SQLite VFS; empty: the default
  std::string synchronous = "FULL";  // anything less loses acknowledged changes in a power cut
  MigrationPlan migrations = current_migrations();
};

struct StoreOptions {
  std::filesystem::path path;
  Post post;  // runs a function on the thread that owns the callbacks, in call order
  const Clock& clock;
  Logger log = {};
  std::uint64_t ballast_bytes = 4 << 20;
  StoreTestOptions testing = {};
};

struct SpaceStatus {
  bool refuses_new_work = false;
  std::size_t waiting_changes = 0;  // accepted work for which even the ballast had no space
};

class StoreFile;
class StoreReader;
class StoreWriter;

class Store {
 public:
  // Opens the store, or creates it with its parent directories. Locks the file, so that a store has
  // one daemon. A file of another program or a newer daemon is refused and left untouched.
  static Result<std::unique_ptr<Store>> open(StoreOptions options);

  // Writes what is queued, then closes. Drops changes that wait for disk space; they were never
  // acknowledged.
  ~Store();

  // A random UUID, created with the file. All our engine objects carry it as a label.
  const std::string& instance_id() const { return instance_id_; }
  const std::filesystem::path& path() const;

  // Every sandbox that is not purged. `broken` lists those that cannot be decoded.
  Result<LoadedSandboxes> load();

  // Callbacks run in call order, except that a refusal for lack of space may overtake accepted work
  // that waits for space.
  void append(Change change, std::function<void(Result<Committed>)> on_committed);

  // For shutdown: from now on a change that cannot be written, because the disk is full or another
  // process holds a lock, fails with SHUTTING_DOWN instead of waiting.
  void stop_waiting();

  // Events after sequence `after`: as many as fit both limits, but at least one if any exist.
  // SANDBOX_NOT_FOUND once the sandbox is purged.
  void read_events(std::string sandbox_id, std::uint64_t after, std::size_t limit_count,
                   std::size_t limit_bytes, std::function<void(Result<EventPage>)> done);
  // Events of all sandboxes after position `after`, up to position `until`: as many as fit both
  // limits, but at least one if any exist.
  void read_all_events(std::uint64_t after, std::uint64_t until, std::size_t limit_count,
                       std::size_t limit_bytes, std::function<void(Result<AllEventsPage>)> done);
  void read_exec(std::string exec_id, std::function<void(Result<ExecRecord>)> done);
  // Running and ended execs in start order, from the beginning (`after` 0) or after the `last` of
  // an earlier page; as many as fit both limits, but at least one if any exist.
  void read_execs(std::string sandbox_id, std::uint64_t after, std::size_t limit_count,
                  std::size_t limit_bytes, std::function<void(Result<ExecPage>)> done);
  // Returns those of these IDs that are reserved but have no record any more.
  void read_purged(std::vector<std::string> sandbox_ids,
                   std::function<void(Result<std::vector<std::string>>)> done);

  SpaceStatus space() const;

 private:
  Store();

  std::string instance_id_;
  std::unique_ptr<const StoreOptions> options_;
  // Order matters: the file's own descriptor must be closed after every connection, because closing
  // any descriptor of a file drops all POSIX locks of this process on it.
  std::unique_ptr<StoreFile> file_;
  // Closed after the reader: the last connection cleans up the log.
  std::unique_ptr<StoreWriter> writer_;
  std::unique_ptr<StoreReader> reader_;
};

}  // namespace agbox
