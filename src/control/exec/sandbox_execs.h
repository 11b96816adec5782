// SPDX-License-Identifier: Apache-2.0
// The execs of one sandbox that have not ended: accepts them, sends them to the guest, cancels them
// and records their ends. Each runs exactly once, even if daemon or guest crash in between:
//
//   files created, then one change: the exec and EXEC_STARTED     accepted; sent; replied
//     guest connected:      StartExec with the files
//     guest not connected:  on connect, it gets those that it does not know, again or for the first
//                           time
//   ExecEnded: one change: how it ended, and its event            published
//     ForgetExec; until then the guest reports the end again on every connect
//   never sent to a guest: the reason is the last line of its standard error before its end, which
//     is then one change too
//
// Ended execs are only in the store. What readers see of a running one changes when the change is
// on disk, together with the sandbox's newest sequence.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agbox/v1/service.pb.h"
#include "async/condition.h"
#include "base/log.h"
#include "base/result.h"
#include "control/actor_services.h"
#include "control/event_feed.h"
#include "control/exec/exec_outcome.h"
#include "control/sandbox/operations/operation.h"
#include "control/sandbox/sandbox_journal.h"
#include "model/exec/exec_output_source.h"
#include "model/exec/exec_request.h"
#include "model/exec/input_writer.h"
#include "model/guest/exec_end.h"
#include "model/guest/guest_hello.h"
#include "place/place.h"

namespace agbox {

class CompanionGuest;

class SandboxExecs {
 public:
  // What they need of their sandbox.
  struct Sandbox {
    const SandboxFacts& facts;  // always current
    SandboxPlace& place;
    SandboxJournal& journal;
    // nullptr if there is no companion of that name.
    std::function<CompanionGuest*(const std::string& name)> guest_of_companion;
    std::function<Result<>()> check_takes_execs;
    std::function<void()> on_change;  // an exec was added or removed
  };

  SandboxExecs(ActorServices& services, Sandbox sandbox, Logger log);
  SandboxExecs(const SandboxExecs&) = delete;
  ~SandboxExecs();

  // Those that were running in an earlier run of the daemon.
  void restore(std::vector<ExecRecord> running);

  // --- requests of clients ---
  // Requires that the sandbox takes execs, and that no other exec with this ID is running or being
  // accepted.
  asio::awaitable<Result<v1::CreateExecResponse>> create(ExecRequest spec);
  // Returns once an exec that is being accepted is accepted, refused or shown.
  asio::awaitable<void> wait_until_decided(std::string exec_id);
  // Requires that it is shown.
  asio::awaitable<Result<>> cancel(std::string exec_id);
  // A running exec as readers see it; nullptr before it was accepted and after its end.
  std::shared_ptr<const ExecRecord> shown(std::string_view exec_id) const;
  std::vector<std::shared_ptr<const ExecRecord>> all_shown() const;
  // All of them as events for a new subscription.
  EventSubscription::Snapshot snapshot() const;
  bool has_any() const { return !execs_.empty(); }
  // Whether the place uses files for one of them: it must not be destroyed now.
  bool use_files() const { return has_any() || opening_ > 0; }
  std::uint64_t newest_sequence() const { return journal_.handle().last_event_sequence(); }
  // `on_end` is called once, when this exec's end is published, if the caller still holds the
  // result.
  std::shared_ptr<const OnExecEnd> watch(std::string_view exec_id, OnExecEnd on_end);

  // --- input, in sandbox_execs_input.cpp ---
  // Requires that it is shown. The writer before it, if there is one, is stopped first. Errors:
  // EXEC_HAS_NO_INPUT, EXEC_INPUT_CLOSED, EXEC_INPUT_TAKEN if yet another one came meanwhile,
  // EXEC_ALREADY_TERMINAL. Waits for a guest that reconnects.
  asio::awaitable<Result<ExecInput>> attach_input(std::string exec_id,
                                                  std::shared_ptr<const InputWriter> writer);
  // Only by the current writer, which has closed its place.
  Result<> end_input(const std::string& exec_id, const InputWriter* writer);
  Result<> resize_terminal(const std::string& exec_id, TerminalSize size);
  Result<> signal(const std::string& exec_id, int number);

  // --- reports of a guest: that of the primary, or of a companion ---
  void guest_connected(const GuestHello& hello, CompanionGuest* guest = nullptr);
  void guest_ended(const ExecEnd& end, const CompanionGuest* guest = nullptr);
  // It was given to the guest's link, which could not send it.
  void guest_not_reached(const std::string& exec_id, const std::string& why,
                         const CompanionGuest* guest = nullptr);
  void guest_truncated(const std::string& exec_id, const CompanionGuest* guest = nullptr);

  // --- the guest of a companion, which comes and goes while its sandbox runs ---
  bool has_any_of(const CompanionGuest& guest) const;
  // One of them that has not ended.
  bool runs(const std::string& exec_id, const CompanionGuest& guest) const;
  // It has ended, and what it may have run with it.
  void end_sent_of(const CompanionGuest& guest, const ExecOutcome& outcome);
  // It cannot be started.
  void end_unsent_of(const CompanionGuest& guest, const ExecOutcome& outcome);

  // --- changes of the sandbox ---
  // Their part of a larger change: the mutations precede the sandbox's own event, `show` is called
  // when they are on disk.
  struct Part {
    std::vector<Mutation> mutations;
    SandboxJournal::Show show;
  };
  // The sandbox stops: asks the guest to end them. No exec is taken from now on.
  Part cancel_all();
  // Returns when none is left, or at the limit. CANCELLED if the caller was cancelled. Does not
  // wait for those whose files are still being created: they will be refused.
  asio::awaitable<Result<>> wait_for_ends(std::chrono::steady_clock::time_point limit);
  // The container is gone, so all of them have ended. No exec is taken from now on.
  Part end_all(const ExecOutcome& outcome);
  // The same if the container is restarted: execs that were not sent to a guest yet, and new ones,
  // wait for it.
  Part end_for_restart(const ExecOutcome& outcome);
  // A stop or a delete has failed: those that were not sent to a guest yet never will be.
  Part end_unsent(const ExecOutcome& outcome);
  // An earlier run of the daemon has ended those that ran; the others wait for the restart.
  void hold_restored();
  // Some have waited for the restart as long as they may.
  void end_waits(const std::string& last_exit);
  // Some have taken as long as they may: cancels them.
  void end_timeouts();
  // The container runs again.
  void take_again();

 private:
  struct RunningExec {
    CompanionGuest* guest = nullptr;          // of its companion; nullptr: it runs in the primary
    std::shared_ptr<const ExecRecord> shown;  // empty while it is being accepted
    store::v1::Exec record;                   // as decided; may be ahead of the disk
    std::size_t bytes = 0;
    bool is_ending = false;   // its end is decided
    bool is_opening = false;  // its files are being opened, and then it is sent
    bool may_run = false;     // it was sent to the guest, or may have been by an earlier daemon
    std::optional<BootTime> waits_since{};  // for a restart of the container
    std::optional<BootTime> times_out_at{};
    std::weak_ptr<const InputWriter> writer{};
    std::vector<std::weak_ptr<const OnExecEnd>> watchers{};
  };

  SandboxPlace& place_of(const CompanionGuest* guest) const;
  SandboxPlace& place_of(const RunningExec& exec) const { return place_of(exec.guest); }
  // Its guest takes execs now.
  bool is_reachable(const CompanionGuest* guest) const;
  // Its container is down or starting.
  bool is_held(const RunningExec& exec) const { return is_held_ && exec.guest == nullptr; }
  // An exec that this guest may report about; nullptr if it is not one of its own.
  RunningExec* find(std::string_view exec_id, const CompanionGuest* guest);
  void end_of(const CompanionGuest& guest, const ExecOutcome& outcome, bool may_run);
  std::vector<std::string> environment_of(
      const CompanionGuest* guest,
      const google::protobuf::Map<std::string, std::string>& overrides) const;
  Result<> check_maxima(const ExecRequest& spec, const CompanionGuest* guest) const;
  // Creates its files and records it.
  asio::awaitable<Result<OutputPaths>> record_start(std::string exec_id,
                                                    v1::CreateExecRequest request);
  // Ends it if its files cannot be opened.
  asio::awaitable<void> send(std::string exec_id);
  void give_to_guest(const std::string& exec_id);
  asio::awaitable<Result<ExecInput>> take_input(std::string exec_id,
                                                std::shared_ptr<const InputWriter> writer);
  // Fails if the exec has ended, or another one writes.
  Result<> check_writes(const std::string& exec_id, const InputWriter* writer) const;
  void send_cancel(const std::string& exec_id);
  void forget(const std::string& exec_id, const CompanionGuest* guest);
  void end(const std::string& exec_id, const ExecOutcome& outcome);

  // One that no guest got, and why.
  struct Unstarted {
    SandboxPlace* place;
    std::string exec_id;
    store::v1::Exec record;
    std::string reason;
  };
  // Its reason is in its output before its end is on disk.
  void end_unstarted(const std::string& exec_id, const ExecOutcome& outcome);
  // The same for ends that are appended next.
  void explain(std::vector<Unstarted> unstarted);
  asio::awaitable<void> write_reasons(std::vector<Unstarted> unstarted,
                                      std::shared_ptr<bool> is_done);
  asio::awaitable<void> await_reasons(std::shared_ptr<const bool> is_done,
                                      std::function<void()> release);

  void add_end(const std::string& exec_id, RunningExec& exec, const ExecOutcome& outcome,
               std::vector<Mutation>& mutations);
  void show_end(const std::string& exec_id, const ExecOutcome& outcome);
  static std::string guest_too_old(const std::string& sandbox_id);
  static ExecOutcome outcome_unless_cancelled(const RunningExec& exec, const ExecOutcome& outcome);
  Part end_those(const ExecOutcome& outcome,
                 const std::function<bool(const RunningExec& exec)>& is_meant);
  void wait_for_restart(RunningExec& exec);
  void set_wait_deadline();
  // Call when it is shown.
  void begin_timeout(RunningExec& exec);
  void set_timeout_deadline();
  void show_record(const std::string& exec_id, const store::v1::Exec& record);
  SandboxJournal::OnDisk store_record(const std::string& exec_id, const RunningExec& exec);
  void enter(const std::string& exec_id, RunningExec exec);
  void leave(const std::string& exec_id);
  RunningExec* find(std::string_view exec_id);

  ActorServices& services_;
  SandboxJournal& journal_;
  const SandboxFacts& facts_;
  SandboxPlace& place_;  // of the primary
  std::function<CompanionGuest*(const std::string& name)> guest_of_companion_;
  std::function<Result<>()> check_takes_execs_;
  std::function<void()> on_change_;
  Logger log_;
  std::map<std::string, RunningExec, std::less<>> execs_;
  std::size_t bytes_ = 0;
  int opening_ = 0;  // whose files are being opened or written; they may have ended
  // The outcome of an exec that was still being accepted when the sandbox stopped taking execs.
  std::optional<ExecOutcome> no_more_;
  // The primary is down or starting: a connected guest has not started the workload yet.
  bool is_held_ = false;
  Condition changed_;  // an exec was shown or removed
};

}  // namespace agbox
