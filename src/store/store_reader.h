// SPDX-License-Identifier: Apache-2.0
// The reader thread, with its own connection: it never waits for a sync, and the writer never waits
// for it.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
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
  // Completes queued reads.
  ~StoreReader() { thread_.join(); }

  // Calls `read` on the reader's thread, in one read transaction, and posts its result to `done`.
  template <class T, class Read>
  void answer(std::function<void(Result<T>)> done, Read read) {
    boost::asio::post(thread_, [this, done = std::move(done), read = std::move(read)] {
      auto result = std::make_shared<Result<T>>(in_snapshot<T>(read));
      post_([done, result] { done(std::move(*result)); });
    });
  }

  // As documented in Store; only within answer().
  Result<EventPage> event_page(const std::string& sandbox_id, std::uint64_t after,
                               std::size_t limit_count, std::size_t limit_bytes);
  Result<AllEventsPage> all_events_page(std::uint64_t after, std::uint64_t until,
                                        std::size_t limit_count, std::size_t limit_bytes);
  Result<ExecRecord> exec(const std::string& exec_id);
  Result<ExecPage> exec_page(const std::string& sandbox_id, std::uint64_t after,
                             std::size_t limit_count, std::size_t limit_bytes);
  Result<std::vector<std::string>> purged(const std::vector<std::string>& sandbox_ids);

 private:
  StoreReader(sqlite::Connection connection, Post post)
      : connection_(std::move(connection)), post_(std::move(post)) {}

  template <class T, class Read>
  Result<T> in_snapshot(const Read& read) {
    AGBOX_TRY_VOID(run(begin_));
    Result<T> result = read(*this);
    AGBOX_TRY_VOID(run(end_));
    return result;
  }
  static Result<> run(sqlite::Statement& statement);
  Result<std::int64_t> sandbox_number(const std::string& sandbox_id);

  sqlite::Connection connection_;
  Post post_;
  sqlite::Statement begin_, end_, find_sandbox_, newest_, page_, all_events_, exec_, exec_numbers_,
      exec_by_number_, purged_;
  boost::asio::thread_pool thread_{1};  // last, because it uses all of the above
};

}  // namespace agbox
