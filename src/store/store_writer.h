// SPDX-License-Identifier: Apache-2.0
// The one thread that writes. Group commit without a timer: everything that was queued while the
// last commit was on its way to disk becomes the next commit, so a change alone waits for nobody
// and many changes share one sync. Also keeps the log short, and gets along without room on the
// disk.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/log.h"
#include "store/ballast.h"
#include "store/change_writer.h"
#include "store/log_room.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace agbox {

class StoreWriter {
 public:
  struct Parts {
    sqlite::Connection connection;
    Ballast ballast;
    std::filesystem::path log_path;  // SQLite's own
    const Clock& clock;
    Post post;
    Logger log;
  };

  static sqlite::SqlResult<std::unique_ptr<StoreWriter>> start(Parts parts);
  // Writes what is queued and ends the thread.
  ~StoreWriter();

  void append(Change change, std::function<void(Result<Committed>)> on_committed);
  void stop_waiting();
  SpaceStatus space() const;

 private:
  struct Pending {
    Change change;
    std::function<void(Result<Committed>)> on_committed;
  };
  using Batch = std::vector<Pending>;
  using Outcomes = std::vector<Result<Committed>>;

  explicit StoreWriter(Parts parts);

  void run();
  // Moves what is queued behind what waits already. False: time to end.
  bool take_queued(Batch& waiting);
  // Empties `waiting`, or leaves in it what the disk has no room for.
  void commit(Batch& waiting);
  sqlite::SqlResult<Outcomes> write(const Batch& batch);
  sqlite::SqlResult<Outcomes> write_in_transaction(const Batch& batch);
  void make_room();
  void look_for_room();
  static bool is_new_work(const Pending& pending);
  void refuse_new_work(Batch& waiting);
  void refuse(Batch refused, const Error& why);
  bool may_wait() const;
  void acknowledge(Batch batch, Outcomes outcomes);
  void keep_log_short();

  sqlite::Connection connection_;
  Ballast ballast_;
  LogRoom log_room_;
  const Clock& clock_;
  Post post_;
  Logger log_;
  std::unique_ptr<ChangeWriter> changes_;
  sqlite::Statement begin_, commit_;
  int log_pages_ = 0;  // after the latest commit
  bool is_short_of_room_ = false;
  std::chrono::milliseconds pause_{0};  // before the next try to write what waits

  mutable std::mutex mutex_;  // guards what append() and space() share with the thread
  std::condition_variable something_to_do_;
  Batch queued_;
  bool is_ending_ = false;
  bool may_wait_ = true;
  SpaceStatus space_;

  std::thread thread_;  // joined by the destructor; last, because it uses all of the above
};

}  // namespace agbox
