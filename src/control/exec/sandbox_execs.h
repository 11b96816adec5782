// SPDX-License-Identifier: Apache-2.0
// The execs of one sandbox that have not ended: accepts them, gives them to the guest, cancels them
// and records their ends. Each runs exactly once, whoever dies in between:
//
//   files made, then one change: the exec and EXEC_STARTED        accepted; replied
//     guest is here:  StartExec with the files
//     guest is not:   when it comes, those that it does not know are given to it, again or first
//   ExecEnded: one change: how it ended, and its event            published
//     ForgetExec; until then the guest tells the end again whenever it comes
//
// Ended execs are in the store alone. What readers see of a running one changes when that change is
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
#include "control/event_feed.h"
#include "control/exec/exec_outcome.h"
#include "control/sandbox/operations/operation.h"
#include "control/sandbox/sandbox_journal.h"
#include "control/services.h"
#include "model/exec/exec_output_source.h"
#include "model/exec/exec_request.h"
#include "model/guest/exec_end.h"
#include "model/guest/guest_hello.h"
#include "place/place.h"

namespace agbox {

class SandboxExecs {
 public:
  using Reply = std::function<void(Result<>)>;
  using CreateReply = std::function<void(Result<v1::CreateExecResponse>)>;

  // The facts are the sandbox's own, as they are at each moment. `on_change` is told when one came
  // or went.
  SandboxExecs(Services& services, SandboxJournal& journal, const SandboxFacts& facts,
               SandboxPlace& place, Logger log, std::function<void()> on_change);
  SandboxExecs(const SandboxExecs&) = delete;
  ~SandboxExecs();

  // Those that an earlier run of the daemon left running.
  void restore(std::vector<ExecRecord> running);

  // --- what clients ask for ---
  // The sandbox takes execs, and no other exec with this id is running or being accepted.
  void create(ExecRequest spec, CreateReply reply);
  // Of one that is shown.
  void cancel(const std::string& exec_id, Reply reply);
  // A running exec as readers see it; nothing before it was accepted and after its end.
  std::shared_ptr<const ExecRecord> shown(std::string_view exec_id) const;
  std::vector<std::shared_ptr<const ExecRecord>> all_shown() const;
  // All of them as events for somebody who begins to follow the sandbox.
  EventSubscription::Snapshot snapshot() const;
  bool has_any() const { return !execs_.empty(); }
  std::uint64_t newest_sequence() const { return journal_.handle().last_event_sequence(); }
  // Told once when this exec's end is published; kept by the caller for as long as it wants to be
  // told.
  std::shared_ptr<const OnExecEnd> watch(std::string_view exec_id, OnExecEnd on_end);
  // Reply when everything told to the store so far is shown.
  void after_all_so_far(std::function<void()> then);

  // --- what the guest tells ---
  void guest_connected(const GuestHello& hello);
  void guest_ended(const ExecEnd& end);
  void guest_truncated(const std::string& exec_id);

  // --- what becomes of the sandbox ---
  // Their part of a larger change: the mutations go before the sandbox's own event, `show` is
  // called when they are on disk.
  struct Part {
    std::vector<Mutation> mutations;
    SandboxJournal::Show show;
  };
  // The sandbox stops: the guest is asked to end them. From here on none is taken.
  Part cancel_all();
  // Back when none is left, or at the limit. CANCELLED where the caller was.
  asio::awaitable<Result<>> wait_for_ends(std::chrono::steady_clock::time_point limit);
  // The container is gone, so all of them are over. From here on none is taken.
  Part end_all(const ExecOutcome& outcome);
  // The same where the container is started again: those that no guest was given, and those that
  // come from here on, wait for it.
  Part end_for_restart(const ExecOutcome& outcome);
  // A stop or a delete has failed: those that no guest was given are given to none any more.
  Part end_unsent(const ExecOutcome& outcome);
  // The container runs again.
  void take_again() {
    no_more_.reset();
    is_held_ = false;
  }

 private:
  struct RunningExec {
    std::shared_ptr<const ExecRecord> shown;  // empty while it is being accepted
    store::v1::Exec record;                   // as decided; may be ahead of the disk
    std::size_t bytes = 0;
    bool is_ending = false;  // its end is decided
    bool may_run =
        false;  // the guest was given it, or an earlier run of the daemon may have done so
    std::vector<std::weak_ptr<const OnExecEnd>> watchers{};
  };

  Result<> check_maxima(const ExecRequest& spec) const;
  void accepted(const std::string& exec_id);
  // Ends it if its files cannot be opened.
  void send(const std::string& exec_id);
  void give_to_guest(const std::string& exec_id);
  void send_cancel(const std::string& exec_id);
  void forget(const std::string& exec_id);
  void end(const std::string& exec_id, const ExecOutcome& outcome);
  void add_end(const std::string& exec_id, RunningExec& exec, const ExecOutcome& outcome,
               std::vector<Mutation>& mutations);
  void show_end(const std::string& exec_id, const ExecOutcome& outcome);
  Part end_those(const ExecOutcome& outcome,
                 const std::function<bool(const RunningExec& exec)>& is_meant);
  void show_record(const std::string& exec_id, const store::v1::Exec& record);
  void store_record(const std::string& exec_id, const RunningExec& exec, Reply reply);
  void leave(const std::string& exec_id);
  RunningExec* find(std::string_view exec_id);
  std::vector<std::string> environment(const v1::CreateExecRequest& request) const;

  Services& services_;
  SandboxJournal& journal_;
  const SandboxFacts& facts_;
  SandboxPlace& place_;
  Logger log_;
  std::map<std::string, RunningExec, std::less<>> execs_;
  std::size_t bytes_ = 0;
  std::function<void()> on_change_;
  // What becomes of an exec whose acceptance was under way when the sandbox ceased to run any.
  std::optional<ExecOutcome> no_more_;
  // The container is down or being started: a guest that is there already was not told to go yet.
  bool is_held_ = false;
  Condition ends_;
};

}  // namespace agbox
