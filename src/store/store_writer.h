// SPDX-License-Identifier: Apache-2.0
// The writer thread. Group commit without a timer: everything queued during one commit becomes the
// next, so a single change is not delayed and many changes share one sync. Also checkpoints the log
// and handles a full disk.
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
#include "store/sqlite.h"
#include "store/store.h"
#include "store/wal_reserve.h"

namespace agbox {

class StoreWriter {
 public:
  struct Parts {
    sqlite::Connection connection;
    Ballast ballast;
    std::filesystem::path log_path;  // of the write-ahead log
    const Clock& clock;
    Post post;
    Logger log;
  };

  static sqlite::SqlResult<std::unique_ptr<StoreWriter>> start(Parts parts);
  // Writes what is queued, then ends the thread.
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
  // Appends queued changes to `waiting`. False when it is time to end.
  bool take_queued(Batch& waiting);
  // Empties `waiting`, or leaves in it what cannot be written yet.
  void commit(Batch& waiting);
  sqlite::SqlResult<Outcomes> write(const Batch& batch);
  sqlite::SqlResult<Outcomes> write_in_transaction(const Batch& batch);
  void free_space();
  void check_space();
  static bool is_new_work(const Pending& pending);
  void refuse_new_work(Batch& waiting);
  void refuse(Batch refused, const Error& why);
  bool may_wait() const;
  void acknowledge(Batch batch, Outcomes outcomes);
  void keep_log_short();

  sqlite::Connection connection_;
  Ballast ballast_;
  WalReserve wal_reserve_;
  const Clock& clock_;
  Post post_;
  Logger log_;
  std::unique_ptr<ChangeWriter> changes_;
  sqlite::Statement begin_, commit_;
  int log_pages_ = 0;  // after the latest commit
  bool is_short_of_space_ = false;
  std::chrono::milliseconds retry_delay_{0};  // before the next attempt to write

  mutable std::mutex mutex_;  // guards what append() and space() share with the thread
  std::condition_variable wake_;
  Batch queued_;
  bool is_ending_ = false;
  bool may_wait_ = true;
  SpaceStatus space_;

  std::thread thread_;  // joined by the destructor; last, because it uses all of the above
};

}  // namespace agbox
