// SPDX-License-Identifier: Apache-2.0
// One sandbox: its state, its history and the one operation that may be under way with it. Every
// method runs on the control thread and never suspends; long work is a coroutine that owns what it
// needs and reports its end.
//
// `life_` is what decisions see and may be ahead of the disk; `handle_` is what readers see and
// never is.
#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/task_group.h"
#include "base/clock.h"
#include "base/log.h"
#include "control/event_feed.h"
#include "control/operation.h"
#include "control/services.h"
#include "docker/event_watch.h"
#include "model/lifecycle.h"
#include "model/sandbox_spec.h"
#include "store/store.h"

namespace agbox {

class SandboxActor {
 public:
  using Reply = std::function<void(Result<>)>;

  // Told once that the sandbox is deleted, for good and on disk.
  using OnDeleted = std::function<void(const std::string& sandbox_id, WallTime when)>;

  // A sandbox that a client asks for; nothing is stored before accept().
  SandboxActor(Services& services, OnDeleted on_deleted, std::string sandbox_id, SandboxSpec spec,
               store::v1::CreatedWith created_with);
  // A sandbox of an earlier run of the daemon.
  SandboxActor(Services& services, OnDeleted on_deleted, SandboxRecord record, SandboxSpec spec);
  SandboxActor(const SandboxActor&) = delete;

  const std::string& id() const { return facts_.sandbox_id; }
  const v1::SandboxHandle& handle() const { return handle_; }
  const std::shared_ptr<EventFeed>& feed() const { return feed_; }
  bool is_deleted() const { return handle_.state() == v1::SANDBOX_STATE_DELETED; }
  // Whether a delete would be the first to ask for it.
  bool is_deletable() const {
    return life_.state != Lifecycle::Deleting && life_.state != Lifecycle::Deleted;
  }

  // Reserves the id and stores the sandbox; refused where the id was ever used.
  void accept(Reply reply);
  // The create begins; called once accept() has succeeded.
  void begin() { work(); }
  // Goes on with what was under way when the daemon ended.
  void recover();

  void remove(std::string reason, Reply reply);

  // What waits for the engine goes on now.
  void engine_is_back();

 private:
  struct Running {
    OperationKind kind;
    std::shared_ptr<asio::cancellation_signal> cancel{};
  };

  // Stores the events with the state they lead to and `also`, then shows them; then `reply`.
  void record(const std::vector<LifecycleEvent>& events, std::vector<Mutation> also,
              Urgency urgency, Reply reply);
  void publish(const SandboxStatus& status, Committed committed);
  void forget_spec();
  // Starts what the state asks for, or ends what it no longer asks for. Safe to call at any time.
  void work();
  std::optional<OperationKind> wanted_operation() const;
  asio::awaitable<void> run(OperationKind kind);
  void ended(OperationKind kind, OperationOutcome outcome);
  void succeeded(OperationKind kind);
  void failed(OperationKind kind, const Error& error, bool has_cleaned_up);
  void retry_later();
  asio::awaitable<void> wait_for_retry();
  void end_wait_for_retry();
  void adopt_guest();
  void decide_and_record(const LifecycleCommand& command, std::vector<Mutation> also = {});
  void report_progress(std::string phase);
  WallTime next_event_time();

  Services& services_;
  OnDeleted on_deleted_;
  Logger log_;
  SandboxFacts facts_;
  WallTime created_at_;
  SandboxLife life_;
  SandboxStatus status_;
  bool has_prepared_ = false;  // told that this run of the daemon prepares it
  bool cleans_up_ = false;     // after a failed create, things of it may be left in the engine
  std::uint32_t attempts_ = 0;
  WallTime newest_event_at_{};
  v1::SandboxHandle handle_;
  std::shared_ptr<EventFeed> feed_;

  std::optional<Running> running_;
  asio::steady_timer retry_timer_;
  bool waits_for_retry_ = false;
  Backoff back_off_;
};

}  // namespace agbox
