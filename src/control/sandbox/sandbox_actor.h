// SPDX-License-Identifier: Apache-2.0
// One sandbox: its state, its history, its execs and the one operation that may be under way with
// it. Every method runs on the control thread and never suspends; long work is a coroutine that
// owns what it needs and reports its end.
//
// `life_` is what decisions see and may be ahead of the disk; handle() is what readers see and
// never is.
#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/retry_pause.h"
#include "async/task_group.h"
#include "base/clock.h"
#include "base/log.h"
#include "control/event_feed.h"
#include "control/exec/sandbox_execs.h"
#include "control/sandbox/operations/operation.h"
#include "control/sandbox/sandbox_journal.h"
#include "control/services.h"
#include "model/sandbox/crash_window.h"
#include "model/sandbox/lifecycle.h"
#include "model/sandbox/orphans.h"
#include "model/sandbox/restart_plan.h"
#include "model/spec/sandbox_spec.h"
#include "store/store.h"

namespace agbox {

class SandboxActor {
 public:
  using Reply = std::function<void(Result<>)>;

  // A sandbox that a client asks for; nothing is stored before accept().
  SandboxActor(Services& services, std::string sandbox_id, SandboxSpec spec,
               store::v1::CreatedWith created_with);
  // A sandbox of an earlier run of the daemon.
  SandboxActor(Services& services, SandboxRecord record, SandboxSpec spec);
  SandboxActor(const SandboxActor&) = delete;

  const std::string& id() const { return facts_.sandbox_id; }
  const v1::SandboxHandle& handle() const { return journal_.handle(); }
  const std::shared_ptr<EventFeed>& feed() const { return journal_.feed(); }
  SandboxExecs& execs() { return execs_; }
  // Of each of its execs, both streams; 0: no limit.
  std::uint64_t exec_output_limit() const { return facts_.created_with.exec_output_max_bytes(); }
  bool is_deleted() const { return handle().state() == v1::SANDBOX_STATE_DELETED; }
  // Whether a delete would be the first to ask for it.
  bool is_deletable() const {
    return life_.state != Lifecycle::Deleting && life_.state != Lifecycle::Deleted;
  }

  // Reserves the id and stores the sandbox; refused where the id was ever used.
  void accept(Reply reply);
  // The create begins; called once accept() has succeeded.
  void begin();
  // Goes on with what was under way when the daemon ended.
  void recover();
  // The same for one whose record cannot be read: it fails with the reason, and can be deleted.
  void recover_unreadable(const std::string& why);
  // What it claims of the things that carry its labels.
  SandboxClaim claim() const;

  // Refused where the state forbids it, or no engine is there to do it. A stop that is under way
  // already is accepted and changes nothing.
  void stop(Reply reply);
  void resume(Reply reply);
  // Legal in every state; what is under way is given up.
  void remove(const std::string& reason, Reply reply);
  // It was left alone for as long as its state allows.
  void time_is_up();
  void restart_is_due();

  // In memory: none once it is deleted.
  std::size_t spec_bytes() const { return facts_.spec.bytes; }
  // Also of one that is deleted: what its execs wrote is kept with its history.
  std::filesystem::path exec_log_folder() const {
    return std::filesystem::path(facts_.created_with.exec_output_root()) / id();
  }
  // SANDBOX_NOT_READY where the state forbids an exec.
  Result<> check_takes_execs() const;

  // What waits for the engine goes on now.
  void engine_is_back();
  // In its name, and perhaps for an earlier run of the daemon.
  void engine_made_something() { was_made_since_teardown_ = true; }
  // The engine says that the container has ended, or its isolation cannot be proven any more.
  void doubt_container();
  void guest_connected(const guestlink::GuestHello& hello);
  void guest_lost() { doubt_guest(); }

 private:
  struct Running {
    OperationKind kind;
    std::shared_ptr<asio::cancellation_signal> cancel{};
  };

  // What goes into one change with the sandbox's own events: what becomes of execs before them, and
  // other mutations.
  struct Beside {
    SandboxExecs::Part execs;
    std::vector<Mutation> mutations;
  };
  // Stores the events with the state they lead to, then shows them; then `reply`.
  void record(const std::vector<LifecycleEvent>& events, Beside beside, Urgency urgency,
              Reply reply);
  Mutation new_start();  // with a secret of its own
  Result<> check_engine() const;
  void begin_stop(const std::vector<LifecycleEvent>& events, Reply reply);
  // To what its state and its execs ask for.
  void set_deadline();
  void forget_spec();
  // Starts what the state asks for, or ends what it no longer asks for. Safe to call at any time.
  void work();
  std::optional<OperationKind> wanted_operation() const;
  asio::awaitable<void> run(OperationKind kind);
  asio::awaitable<OperationResult<>> look(OperationKind kind, OperationOutcome& outcome);
  void ended(OperationKind kind, OperationOutcome outcome);
  void uncount_create();
  void not_done(OperationKind kind, const OperationOutcome& outcome);
  // Whether the operation ends with this failure, or is tried again.
  bool is_final(OperationKind kind, const OperationFailure& failure) const;
  void succeeded(OperationKind kind);
  void failed(OperationKind kind, const OperationOutcome& outcome);
  void retry_later();
  asio::awaitable<void> work_after(asio::awaitable<bool> pause);
  void became_live();
  void deleted();
  // Whether a guest may be there that has to do with us.
  bool has_guest() const;
  void decide_and_record(const LifecycleCommand& command, Beside beside = {}, Reply reply = {});
  void report_progress(std::string phase);

  // --- what the engine shows, in sandbox_recovery.cpp ---
  void go_on();  // with the operation that an earlier run of the daemon left
  void halted();
  guestlink::GuestResult<> adopt_guest();
  SandboxStored stored_now() const { return {life_.state, cleans_up_, attempts_}; }
  RestartPlan plan_for(const SandboxLook& look) const;
  void doubt_guest();
  void look_unless_connected();
  void look_if_it_should_run();
  void look_again();
  void looked(const SandboxLook& look);
  void lose_primary(const Failure& failure, const ContainerLoss& loss);
  void container_ended(const ContainerLoss& loss);
  void restart_after(std::chrono::milliseconds wait);
  void restart_failed(const OperationFailure& failure);
  void restarted();
  void forget_restart();

  Services& services_;
  Logger log_;
  SandboxFacts facts_;
  SandboxLife life_;
  bool has_prepared_ = false;  // told that this run of the daemon prepares it, and counted
  bool starts_over_ = false;  // an earlier try to create it, perhaps by another daemon, left things
  bool cleans_up_ = false;    // after a failed create, things of it may be left in the engine
  bool was_made_since_teardown_ = false;  // something in the engine, after the latest one began
  bool must_look_ = false;                // whether its container still runs as it was started
  bool looks_again_ = false;              // once the look under way is over
  bool is_down_ = false;                  // its container ended and is to be started again
  bool must_restart_ = false;             // now: the wait before it is over
  bool has_guest_folder_ = true;
  bool must_adopt_ = false;  // at the next look: the host could not until now
  bool is_unreadable_ = false;
  bool must_halt_ = false;                 // unreadable, and its container may run
  std::optional<Failure> untold_failure_;  // of one that must halt first
  CrashWindow crash_window_;
  std::uint32_t attempts_ = 0;
  unsigned lost_starts_ = 0;  // of the create or resume under way, by this daemon
  SandboxJournal journal_;
  SandboxExecs execs_;

  std::optional<Running> running_;
  RetryPause retry_pause_;
};

}  // namespace agbox
