// SPDX-License-Identifier: Apache-2.0
#include "store/store_writer.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/failpoint.h"
#include "model/reasons.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using sqlite::SqlResult;

constexpr auto kFirstRetryDelay = 20ms;
constexpr auto kLongestRetryDelay = 1s;
// How often an idle writer checks whether there is space again.
constexpr auto kSpaceCheckInterval = 1s;
constexpr int kLogPagesBeforeCheckpoint = 1000;
constexpr std::uint64_t kPageBytes = 4096;

}  // namespace

SqlResult<std::unique_ptr<StoreWriter>> StoreWriter::start(Parts parts) {
  std::unique_ptr<StoreWriter> writer(new StoreWriter(std::move(parts)));
  AGBOX_TRY(changes, ChangeWriter::prepare(writer->connection_, writer->clock_));
  writer->changes_ = std::make_unique<ChangeWriter>(std::move(changes));
  AGBOX_TRY(begin, writer->connection_.prepare("BEGIN IMMEDIATE"));
  AGBOX_TRY(commit, writer->connection_.prepare("COMMIT"));
  writer->begin_ = std::move(begin);
  writer->commit_ = std::move(commit);
  // Replaces SQLite's automatic checkpoints, which would delay the callbacks of a commit.
  sqlite3_wal_hook(
      writer->connection_.handle(),
      [](void* pages, sqlite3*, const char*, int log_pages) {
        *static_cast<int*>(pages) = log_pages;
        return SQLITE_OK;
      },
      &writer->log_pages_);
  writer->check_space();
  writer->thread_ = std::thread([self = writer.get()] { self->run(); });
  return writer;
}

StoreWriter::StoreWriter(Parts parts)
    : connection_(std::move(parts.connection)),
      ballast_(std::move(parts.ballast)),
      // Wherever the end of the log is when the disk becomes full, at least the ballast's size
      // remains.
      wal_reserve_(std::move(parts.log_path),
                   kLogPagesBeforeCheckpoint * kPageBytes + ballast_.bytes()),
      clock_(parts.clock),
      post_(std::move(parts.post)),
      log_(std::move(parts.log)) {}

StoreWriter::~StoreWriter() {
  {
    const std::scoped_lock lock(mutex_);
    is_ending_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void StoreWriter::append(Change change, std::function<void(Result<Committed>)> on_committed) {
  bool was_empty = false;
  {
    const std::scoped_lock lock(mutex_);
    was_empty = queued_.empty();
    queued_.push_back({std::move(change), std::move(on_committed)});
  }
  if (was_empty) wake_.notify_one();
}

void StoreWriter::stop_waiting() {
  {
    const std::scoped_lock lock(mutex_);
    may_wait_ = false;
  }
  wake_.notify_one();
}

bool StoreWriter::may_wait() const {
  const std::scoped_lock lock(mutex_);
  return may_wait_;
}

SpaceStatus StoreWriter::space() const {
  const std::scoped_lock lock(mutex_);
  return space_;
}

void StoreWriter::run() {
  Batch waiting;
  while (take_queued(waiting)) {
    if (is_short_of_space_) check_space();
    if (!waiting.empty()) commit(waiting);
    keep_log_short();
    const std::scoped_lock lock(mutex_);
    space_ = {.refuses_new_work = is_short_of_space_, .waiting_changes = waiting.size()};
  }
  if (!waiting.empty()) {
    log_.error("store closed with unwritten changes: disk full", {{"changes", waiting.size()}});
  }
}

bool StoreWriter::take_queued(Batch& waiting) {
  std::unique_lock lock(mutex_);
  const auto has_work = [&] { return is_ending_ || !queued_.empty(); };
  if (!waiting.empty()) {
    wake_.wait_for(lock, retry_delay_, [&] { return has_work() || !may_wait_; });
  } else if (is_short_of_space_) {
    wake_.wait_for(lock, kSpaceCheckInterval, has_work);
  } else {
    wake_.wait(lock, has_work);
  }
  if (is_ending_ && queued_.empty()) return false;
  std::ranges::move(queued_, std::back_inserter(waiting));
  queued_.clear();
  return true;
}

void StoreWriter::commit(Batch& waiting) {
  // A commit into the reserve would succeed, and new work would use it up.
  if (!is_short_of_space_ && std::ranges::any_of(waiting, is_new_work) &&
      wal_reserve_.is_last_space()) {
    free_space();
  }
  if (is_short_of_space_) refuse_new_work(waiting);
  auto outcomes = write(waiting);
  if (!outcomes && outcomes.error().is_out_of_space()) {
    free_space();
    refuse_new_work(waiting);
    outcomes = write(waiting);
  }
  if (!outcomes && (outcomes.error().is_out_of_space() || outcomes.error().is_busy())) {
    if (!may_wait()) {
      log_.error("store closes with unwritten changes",
                 {{"error", outcomes.error().message()}, {"changes", waiting.size()}});
      return refuse(std::exchange(waiting, {}),
                    Error(reason::kShuttingDown, "agboxd is shutting down; retry later"));
    }
    if (retry_delay_ == 0ms) {
      log_.warn("store cannot write, retrying",
                {{"error", outcomes.error().message()}, {"waiting_changes", waiting.size()}});
    }
    retry_delay_ = std::clamp(2 * retry_delay_, std::chrono::milliseconds(kFirstRetryDelay),
                              std::chrono::milliseconds(kLongestRetryDelay));
    return;
  }
  if (!outcomes) die("store: commit failed: " + outcomes.error().message());
  if (retry_delay_ > 0ms) log_.info("store can write again", {{"waited_changes", waiting.size()}});
  retry_delay_ = 0ms;
  acknowledge(std::exchange(waiting, {}), std::move(*outcomes));
}

SqlResult<StoreWriter::Outcomes> StoreWriter::write(const Batch& batch) {
  if (batch.empty()) return Outcomes{};
  auto outcomes = write_in_transaction(batch);
  if (!outcomes && connection_.in_transaction()) {
    if (auto undone = connection_.execute("ROLLBACK"); !undone) {
      die("store: roll-back failed: " + undone.error().message());
    }
  }
  return outcomes;
}

SqlResult<StoreWriter::Outcomes> StoreWriter::write_in_transaction(const Batch& batch) {
  Outcomes outcomes;
  outcomes.reserve(batch.size());
  AGBOX_FAILPOINT("store.before_begin");
  AGBOX_TRY_VOID(begin_.run());
  AGBOX_FAILPOINT("store.after_begin");
  for (const Pending& pending : batch) {
    AGBOX_TRY(outcome, changes_->write(pending.change));
    outcomes.push_back(std::move(outcome));
  }
  AGBOX_FAILPOINT("store.before_commit");
  AGBOX_TRY_VOID(commit_.run());
  AGBOX_FAILPOINT("store.after_commit");
  return outcomes;
}

// The disk is full: releases the ballast and checkpoints the log. With a reserve the log is not
// truncated, or another process could take its blocks.
void StoreWriter::free_space() {
  const bool had_ballast = ballast_.release();
  if (!is_short_of_space_ || had_ballast) {
    log_.error("store's disk is full: refusing new work",
               {{"ballast_freed", had_ballast}, {"ballast_bytes", ballast_.bytes()}});
  }
  is_short_of_space_ = true;
  // What cannot be copied for lack of space stays in the log.
  const int mode = wal_reserve_.is_held() ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE;
  if (auto emptied = connection_.checkpoint(mode);
      !emptied && !emptied.error().is_out_of_space() && !emptied.error().is_busy()) {
    die("store: checkpoint failed: " + emptied.error().message());
  }
}

void StoreWriter::check_space() {
  const auto made = ballast_.is_whole() ? Result<>{} : ballast_.make_with_margin();
  if (made && is_short_of_space_) log_.info("store's disk has free space again");
  if (!made && !is_short_of_space_) {
    log_.error("no space for the store's ballast: refusing new work",
               {{"error", made.error().message()}});
  }
  is_short_of_space_ = !made;
  wal_reserve_.hold();
  const std::scoped_lock lock(mutex_);
  space_.refuses_new_work = is_short_of_space_;
}

bool StoreWriter::is_new_work(const Pending& pending) {
  return pending.change.urgency == Urgency::NewWork;
}

void StoreWriter::refuse_new_work(Batch& waiting) {
  Batch refused;
  Batch accepted;
  for (Pending& pending : waiting) {
    (is_new_work(pending) ? refused : accepted).push_back(std::move(pending));
  }
  waiting = std::move(accepted);
  refuse(std::move(refused),
         Error(reason::kResourceExhausted,
               "the disk of the daemon's store is full; free some space and try again"));
}

void StoreWriter::refuse(Batch refused, const Error& why) {
  Outcomes outcomes(refused.size(), Result<Committed>(std::unexpected(why)));
  acknowledge(std::move(refused), std::move(outcomes));
}

void StoreWriter::acknowledge(Batch batch, Outcomes outcomes) {
  if (batch.empty()) return;
  struct Acknowledgements {
    Batch batch;
    Outcomes outcomes;
  };
  // Shared because std::function must be copyable; only the posted one ever uses it.
  auto shared = std::make_shared<Acknowledgements>(std::move(batch), std::move(outcomes));
  AGBOX_FAILPOINT("store.before_post");
  post_([shared] {
    for (std::size_t i = 0; i < shared->batch.size(); ++i) {
      shared->batch[i].on_committed(std::move(shared->outcomes[i]));
    }
  });
  AGBOX_FAILPOINT("store.after_post");
}

// After the acknowledgements, so that it does not delay them.
void StoreWriter::keep_log_short() {
  if (log_pages_ < kLogPagesBeforeCheckpoint) return;
  AGBOX_FAILPOINT("store.before_checkpoint");
  const auto done = connection_.checkpoint(SQLITE_CHECKPOINT_PASSIVE);
  AGBOX_FAILPOINT("store.after_checkpoint");
  if (!done && !done.error().is_out_of_space() && !done.error().is_busy()) {
    die("store: checkpoint failed: " + done.error().message());
  }
  log_pages_ = 0;  // set again by the next commit
}

}  // namespace agbox
