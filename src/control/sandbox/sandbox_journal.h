// SPDX-License-Identifier: Apache-2.0
// The history of one sandbox and what readers see of it. Callers decide; the journal gives each
// decision its time and its sequence, writes it to disk and then shows it, in the order of
// append().
//
// status() is what was decided and may be ahead of the disk; handle() is what readers see and never
// is.
#pragma once

#include <functional>
#include <memory>
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
  // Everything so far is on disk, and shown.
  OnDisk append_nothing() { return append({}, Urgency::GoesOn); }

  // The error, once everything decided so far is on disk: a refusal may follow from it, and a crash
  // must not contradict what was reported to a client. A full disk delays no refusal.
  OnDisk refuse(Error why);

  // Shown in the handle; call once they are on disk.
  void show_isolation(const std::string& problem, bool is_paused, const std::string& unverified);
  void show_restarts(std::uint64_t count, const std::string& last_exit);

 private:
  void show(const SandboxStatus& status, std::uint64_t newest_sequence);

  ActorServices& services_;
  WallTime created_at_;
  SandboxStatus status_;
  WallTime newest_event_at_{};
  Moment quiet_since_;
  bool is_quiet_since_stored_ = true;
  v1::SandboxHandle handle_;
  std::shared_ptr<EventFeed> feed_;
};

}  // namespace agbox
