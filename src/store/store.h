// SPDX-License-Identifier: Apache-2.0
// The daemon's memory: one SQLite file that holds everything which must outlive the process.
//
//   append()   a Change becomes durable as a whole, in the order of the calls. Its callback comes
//              when it is on disk, never before, so whoever shows things only from the callback
//              never shows what a power cut can take back.
//   read_…()   pages from the same file; they never wait for a write.
//   load()     everything at start.
//
// Every method may be called on any thread; callbacks run where StoreOptions::post takes them. A
// write that fails for another reason than missing room ends the process: memory would be ahead of
// the disk, and the next start repairs that better than anything here could.
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

// What only tests change.
struct StoreTestOptions {
  std::string vfs;                   // of SQLite; empty: the system's
  std::string synchronous = "FULL";  // anything less loses acknowledged changes in a power cut
  MigrationPlan migrations = current_migrations();
};

struct StoreOptions {
  std::filesystem::path path;
  Post post;  // runs a function on the thread that owns the callbacks, in the order of the calls
  const Clock& clock;
  Logger log = {};
  std::uint64_t ballast_bytes = 4 << 20;
  StoreTestOptions testing = {};
};

// Whether the disk has room for us.
struct SpaceStatus {
  bool refuses_new_work = false;
  std::size_t waiting_changes = 0;  // accepted work that even the ballast had no room for
};

class StoreFile;
class StoreReader;
class StoreWriter;

class Store {
 public:
  // Opens the store, or makes a new one with its parent folders. Holds a lock on the file, so that
  // there is one daemon per store. A file that is not ours, or newer than we are, is refused and
  // not touched.
  static Result<std::unique_ptr<Store>> open(StoreOptions options);

  // Writes what is queued, then closes. Changes that wait for room on the disk are given up; nobody
  // was told that they happened.
  ~Store();

  // A random UUID, made with the file. Every engine object of ours carries it.
  const std::string& instance_id() const { return instance_id_; }
  const std::filesystem::path& path() const;

  // Every sandbox that is not purged. A sandbox that cannot be read is named in `broken`.
  Result<LoadedSandboxes> load();

  // Callbacks come in the order of the calls, except that a refusal for want of room may overtake
  // accepted work that waits for it.
  void append(Change change, std::function<void(Result<Committed>)> on_committed);

  // For a daemon that ends: from now on a change that cannot be written, because the disk is full
  // or another process holds a lock on the file, fails with SHUTTING_DOWN instead of waiting.
  void stop_waiting();

  // Events with a sequence greater than `after`: as many as fit both limits, but at least one where
  // there is one. SANDBOX_NOT_FOUND once the sandbox is purged.
  void read_events(std::string sandbox_id, std::uint64_t after, std::size_t limit_count,
                   std::size_t limit_bytes, std::function<void(Result<EventPage>)> done);
  void read_exec(std::string exec_id, std::function<void(Result<ExecRecord>)> done);
  // Running and ended ones in the order of their start: from the beginning (`after` 0), or after
  // the `last` of an earlier page; as many as fit both limits, but at least one where there is one.
  void read_execs(std::string sandbox_id, std::uint64_t after, std::size_t limit_count,
                  std::size_t limit_bytes, std::function<void(Result<ExecPage>)> done);
  // Ids of sandboxes that were deleted at `cutoff` or before, the longest deleted first.
  void read_due_for_purge(WallTime cutoff, std::size_t limit,
                          std::function<void(Result<std::vector<std::string>>)> done);

  // Those of these ids that were taken once and have no record any more.
  void read_purged(std::vector<std::string> sandbox_ids,
                   std::function<void(Result<std::vector<std::string>>)> done);

  SpaceStatus space() const;

 private:
  Store();

  std::string instance_id_;
  std::unique_ptr<const StoreOptions> options_;
  // The order matters: the file's own descriptor must be closed after every connection, because
  // closing any descriptor of a file drops all POSIX locks that this process has on it.
  std::unique_ptr<StoreFile> file_;
  std::unique_ptr<StoreWriter> writer_;  // closed after the reader: the last one tidies the log up
  std::unique_ptr<StoreReader> reader_;
};

}  // namespace agbox
