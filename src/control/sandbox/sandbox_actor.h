// SPDX-License-Identifier: Apache-2.0
// One sandbox: its history, its execs and at most one running operation. Passes events to the work
// table (model/sandbox/work.h) and executes what the table returns: records, runs, waits. Every
// method runs on the control thread, and only reconnect() suspends, before the first operation; an
// operation is a coroutine that owns what it needs and reports its end.
//
// `state_` is what decisions see and may be ahead of the disk; handle() is what readers see and
// never is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/retry_timer.h"
#include "base/log.h"
#include "control/actor_services.h"
#include "control/companion/sandbox_companions.h"
#include "control/event_feed.h"
#include "control/exec/sandbox_execs.h"
#include "control/sandbox/guest_directory.h"
#include "control/sandbox/operations/operation.h"
#include "control/sandbox/run_operation.h"
#include "control/sandbox/sandbox_journal.h"
#include "control/sandbox/sandbox_lease.h"
#include "model/sandbox/orphans.h"
#include "model/sandbox/work.h"
#include "model/spec/ports.h"
#include "model/spec/sandbox_spec.h"
#include "place/place.h"
#include "store/store.h"

namespace agbox {

class SandboxActor final : private GuestListener {
 public:
  using OnDisk = SandboxJournal::OnDisk;

  // A sandbox that a client requests; nothing is stored before accept().
  SandboxActor(ActorServices& services, std::string sandbox_id, SandboxSpec spec,
               store::v1::CreatedWith created_with);
  // A sandbox of an earlier run of the daemon.
  SandboxActor(ActorServices& services, SandboxRecord record, SandboxSpec spec);
  SandboxActor(const SandboxActor&) = delete;

  const std::string& id() const { return facts_.sandbox_id; }
  const v1::SandboxHandle& handle() const { return journal_.handle(); }
  const std::shared_ptr<EventFeed>& feed() const { return journal_.feed(); }
  SandboxExecs& execs() { return execs_; }
  // Of each of its execs, both streams; 0: no limit.
  std::uint64_t exec_output_limit() const { return facts_.created_with.exec_output_max_bytes(); }
  bool is_deleted() const { return handle().state() == v1::SANDBOX_STATE_DELETED; }
  // Whether a delete would be the first one.
  bool is_deletable() const {
    return lifecycle().state != Lifecycle::Deleting && lifecycle().state != Lifecycle::Deleted;
  }
  const PortMappings& ports() const { return facts_.spec.create_spec.ports(); }
  // Whether its ports are its own: from the create on, except while it is stopped or has failed.
  bool holds_ports() const {
    return lifecycle().state != Lifecycle::Stopped && lifecycle().state != Lifecycle::Failed &&
           lifecycle().state != Lifecycle::Deleted;
  }
  // In memory: 0 once it is deleted.
  std::size_t spec_bytes() const { return facts_.spec.bytes; }
  // Of a deleted sandbox, only where its output is, which is kept with its history, and its limit.
  const store::v1::CreatedWith& created_with() const { return facts_.created_with; }
  SandboxPlace& place() { return *place_; }
  // A service or companion; empty: the primary, and so is "primary" unless a companion is called
  // that. Its ID is empty if it is still being created. CONTAINER_NOT_FOUND if it does not exist.
  Result<ContainerId> container(const std::string& name) const;
  // All of them, with the names that clients use: the primary first. IDs may be empty. Of a deleted
  // sandbox CONTAINER_NOT_FOUND.
  Result<std::vector<NamedContainer>> containers() const;
  // Its claim on the objects that carry its labels.
  SandboxClaim claim() const;

  // Reserves the id and stores the sandbox; refused if the id was ever used.
  OnDisk accept();
  // Starts the create; call after accept() has succeeded.
  void begin();
  // Continues what was in progress when the daemon ended.
  void recover();
  // The same for one whose record cannot be read: it fails with the reason, and can be deleted.
  void recover_unreadable(const std::string& why);

  // Refused if the state forbids it, or its engine is unreachable. A stop that is in progress
  // already is accepted and changes nothing.
  OnDisk stop();
  OnDisk resume();
  // Legal in every state; what is in progress is cancelled.
  OnDisk remove(const std::string& reason);
  // SANDBOX_NOT_READY if the state forbids an exec.
  Result<> check_takes_execs() const;
  // See SandboxJournal::refuse().
  OnDisk refuse(Error why) { return journal_.refuse(std::move(why)); }
  // Of an exec: empty if that is the primary. CONTAINER_NOT_FOUND if it does not exist.
  Result<> name_container(v1::CreateExecRequest& request) const;
  // ENGINE_UNAVAILABLE if the guest of this container is not connected, and only the engine could
  // bring it back. Empty: the primary.
  Result<> check_reaches_guest(const std::string& container) const;

  // Copies into and out of it that are in progress: while there is one, it is not idle.
  std::size_t file_copies() const { return file_copies_; }
  void count_file_copies(int by);

  SandboxLease& lease() { return lease_; }
  // SANDBOX_HAS_NO_LEASE, or SANDBOX_INVALID_STATE if it is being deleted.
  Result<> check_holdable() const;
  // The deadline of its lease has passed.
  void lease_is_due();

  // Its time to live in the current state has passed.
  void time_is_up();
  void restart_is_due();
  void end_exec_waits() { execs_.end_waits(state_.restarts.last_exit); }
  // Operations that wait for the engine continue now.
  void engine_is_back();
  // An object of this sandbox, possibly requested by an earlier run of the daemon.
  void count_new_object() { ++objects_made_; }
  // The engine reports that the container ended.
  void recheck_container();
  // The engine reports a change of this companion.
  void recheck_companion(const std::string& name) { companions_.may_have_changed(name); }
  // See input::IsolationFailed and input::IsolationHolds.
  void isolation_failed(const std::string& why);
  void isolation_holds(bool from_inside);

 private:
  // References to members above `execs_`.
  SandboxExecs::Sandbox as_seen_by_execs();
  void guest_connected(const GuestHello& hello) override;
  void guest_lost(const std::string& why) override;
  void exec_ended(const ExecEnd& end) override;
  void exec_not_sent(const std::string& exec_id, const std::string& why) override;
  void exec_truncated(const std::string& exec_id) override { execs_.guest_truncated(exec_id); }

  const LifecycleStatus& lifecycle() const { return state_.lifecycle; }
  Surroundings surroundings() const;
  // Passes the input to the table and executes the result.
  struct Taken {
    WorkStep step;
    std::optional<OnDisk> on_disk{};  // of what was recorded
  };
  Taken take(const WorkInput& input);
  // The same for a request of a client: also if it changed nothing, everything before it is on
  // disk.
  OnDisk obey(const WorkInput& input);
  SandboxCompanions::Wanted wanted_of_companions() const;
  // Copies what is known of its container's isolation and restarts to the facts.
  void keep_container_state();
  void report_isolation();
  void follow_isolation(const WorkStep& step);
  OnDisk record(const Record& change, LifecycleStatus lifecycle);
  std::vector<Mutation> mutations_of(const Record& change, LifecycleStatus lifecycle);
  SandboxExecs::Part change_execs(const Record& change);
  void after(Record::Then then);
  SandboxJournal::Show showing_container_state(SandboxJournal::Show show);
  void log_isolation(const IsolationState& before) const;
  void log_event(const LifecycleEvent& event, Lifecycle before) const;
  Mutation new_start();  // with its own secret

  void start(OperationKind kind);
  asio::awaitable<void> run(OperationKind kind);
  asio::awaitable<void> reconnect();
  void ended(OperationKind kind, OperationReport report);
  void log_end(OperationKind kind, const input::Ended& end, const WorkStep& step) const;
  asio::awaitable<void> backoff_over(asio::awaitable<bool> backoff);
  void became_live();
  void restarted();
  void deleted();

  // What companions have is theirs.
  void keep_only_primary();
  std::uint64_t primary_start() const;
  bool has_containers_if_failed() const;
  Result<> check_engine() const;
  void claim_shared();
  bool may_have_guest() const;
  // As its state and its execs require.
  void set_deadline();
  void forget_spec();

  ActorServices& services_;
  Logger log_;
  SandboxFacts facts_;
  WorkState state_;
  bool is_unreadable_ = false;
  GuestDirectory guest_directory_ = GuestDirectory::Usable;
  std::uint64_t objects_made_ = 0;  // by the engine, according to its events
  std::size_t file_copies_ = 0;     // in progress
  std::unique_ptr<SandboxPlace> place_;
  SandboxLease lease_;
  SandboxJournal journal_;
  SandboxExecs execs_;
  SandboxCompanions companions_;
  Event is_reconnected_;  // the guest of an earlier run of the daemon; no operation runs before
  std::optional<Task> operation_;  // the running one
  RetryTimer retry_timer_;
};

}  // namespace agbox
