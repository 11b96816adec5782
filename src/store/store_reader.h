// SPDX-License-Identifier: Apache-2.0
// The reader thread, with its own connection: it never waits for a sync, and the writer never waits
// for it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "store/records.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace agbox {

class StoreReader {
 public:
  static sqlite::SqlResult<std::unique_ptr<StoreReader>> start(sqlite::Connection connection,
                                                               Post post);
  // Completes queued reads, then ends the thread.
  ~StoreReader();

  // As documented in Store.
  void read_events(std::string sandbox_id, std::uint64_t after, std::size_t limit_count,
                   std::size_t limit_bytes, std::function<void(Result<EventPage>)> done);
  void read_exec(std::string exec_id, std::function<void(Result<ExecRecord>)> done);
  void read_execs(std::string sandbox_id, std::uint64_t after, std::size_t limit_count,
                  std::size_t limit_bytes, std::function<void(Result<ExecPage>)> done);
  void read_due_for_purge(WallTime cutoff, std::size_t limit,
                          std::function<void(Result<std::vector<std::string>>)> done);
  void read_purged(std::vector<std::string> sandbox_ids,
                   std::function<void(Result<std::vector<std::string>>)> done);

 private:
  StoreReader(sqlite::Connection connection, Post post)
      : connection_(std::move(connection)), post_(std::move(post)) {}

  void run();
  template <class T, class Read>
  void answer(std::function<void(Result<T>)> done, Read read);
  // Runs several statements in one read transaction.
  template <class Read>
  auto in_snapshot(Read read) -> decltype(read());

  Result<std::int64_t> sandbox_number(const std::string& sandbox_id);
  Result<EventPage> event_page(const std::string& sandbox_id, std::uint64_t after,
                               std::size_t limit_count, std::size_t limit_bytes);
  Result<ExecRecord> exec(const std::string& exec_id);
  Result<ExecPage> exec_page(const std::string& sandbox_id, std::uint64_t after,
                             std::size_t limit_count, std::size_t limit_bytes);
  Result<std::vector<std::string>> due_for_purge(WallTime cutoff, std::size_t limit);
  Result<std::vector<std::string>> purged(const std::vector<std::string>& sandbox_ids);

  sqlite::Connection connection_;
  Post post_;
  sqlite::Statement begin_, end_, find_sandbox_, newest_, page_, exec_, exec_numbers_,
      exec_by_number_, due_, purged_;

  std::mutex mutex_;  // guards the two below
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool is_ending_ = false;

  std::thread thread_;  // joined by the destructor; last, because it uses all of the above
};

}  // namespace agbox
