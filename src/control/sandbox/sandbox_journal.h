// SPDX-License-Identifier: Apache-2.0
// The history of one sandbox and what readers see of it. Callers decide; the journal gives each
// decision its time and its sequence, writes it to disk and then shows it, in the order of
// append().
//
// status() is what was decided and may be ahead of the disk; handle() is what readers see and never
// is.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agbox/v1/sandbox.pb.h"
#include "async/pending.h"
#include "base/clock.h"
#include "base/result.h"
#include "control/actor_services.h"
#include "control/event_feed.h"
#include "store/change.h"
#include "store/records.h"

namespace agbox {

google::protobuf::Timestamp to_timestamp(WallTime time);

class SandboxJournal {
 public:
  using Show = std::function<void()>;
  using OnDisk = Pending<Result<>>;

  // For a sandbox that is not stored yet.
  SandboxJournal(ActorServices& services, const std::string& sandbox_id, const v1::CreateSpec& spec,
                 const store::v1::CreatedWith& created_with);
  // `created_with` is that of the record.
  SandboxJournal(ActorServices& services, const SandboxRecord& record,
                 const store::v1::CreatedWith& created_with);
  SandboxJournal(const SandboxJournal&) = delete;
  ~SandboxJournal() { services_.all_events.remove(handle_); }

  const std::string& sandbox_id() const { return handle_.sandbox_id(); }
  WallTime created_at() const { return created_at_; }
  const SandboxStatus& status() const { return status_; }
  const v1::SandboxHandle& handle() const { return handle_; }
  const std::shared_ptr<EventFeed>& feed() const { return feed_; }

  // The latest change of its state or end of an exec; its time to live counts from here.
  const Moment& quiet_since() const { return quiet_since_; }

  // The time of an event that happens now; monotonic even if the clock is set back.
  WallTime now();
  // The event with its sandbox and its time. Without a state it gets the sandbox's; with another
  // state it changes the sandbox's.
  Mutation entry(v1::SandboxEvent event);

  // Once the mutations are on disk: `show` is called, the events are published, and who waits for
  // the result continues, all in one turn of the control thread. Only the result has an error.
  // Without mutations it only waits for its turn in the queue. The journal must live until its last
  // append is complete.
  OnDisk append(std::vector<Mutation> mutations, Urgency urgency, Show show = {});
  // For an append that must not be on disk before something else is done: from now on all of them
  // wait, until the result is called once, or the journal is destroyed. Those that were appended
  // before do not wait.
  std::function<void()> hold();
  // Everything so far is on disk, and shown.
  OnDisk append_nothing() { return append({}, Urgency::GoesOn); }

  // The error, once everything decided so far is on disk: a refusal may follow from it, and a crash
  // must not contradict what was reported to a client. A full disk delays no refusal.
  OnDisk refuse(Error why);

  // Shown in the handle; call once they are on disk.
  void show_isolation(const std::string& problem, bool is_paused, const std::string& unverified);
  void show_restarts(std::uint64_t count, const std::string& last_exit);
  void show_companion(const v1::CompanionStatus& status);
  // Of a deleted sandbox, whose handle stays in memory: keeps their names and images.
  void forget_companion_specs();
  // Of one that was shown.
  void show_companion_health(const std::string& name, const std::string& health);
  // Those of its container, after those of its create.
  void show_warnings(const google::protobuf::RepeatedPtrField<std::string>& of_container);

 private:
  using OnCommitted = std::function<void(Result<Committed>)>;
  // What goes to the store in its turn; without a change it keeps what follows until it is over.
  struct Waiting {
    std::optional<Change> change{};
    OnCommitted on_committed{};
    bool is_over = false;
  };

  void give_to_store(Change change, OnCommitted on_committed);
  void give_waiting_to_store();
  void publish(const PublishedEvents& events);
  void show(const SandboxStatus& status, std::uint64_t newest_sequence);

  ActorServices& services_;
  WallTime created_at_;
  SandboxStatus status_;
  WallTime newest_event_at_{};
  Moment quiet_since_;
  bool is_quiet_since_stored_ = true;
  v1::SandboxHandle handle_;
  const int warnings_of_create_;  // the handle begins with so many
  std::shared_ptr<EventFeed> feed_;
  std::deque<std::shared_ptr<Waiting>> waiting_;  // begins with one that keeps the others
};

}  // namespace agbox
