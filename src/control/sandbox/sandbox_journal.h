// SPDX-License-Identifier: Apache-2.0
// The history of one sandbox and what readers see of the sandbox. Whoever works on it decides; here
// a decision gets its time and its place in the history, goes to disk, and is shown when it is
// there. Order is that of append().
//
// status() is what was decided and may be ahead of the disk; handle() is what readers see and never
// is.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agbox/v1/sandbox.pb.h"
#include "base/clock.h"
#include "base/result.h"
#include "control/event_feed.h"
#include "control/services.h"
#include "store/change.h"
#include "store/records.h"

namespace agbox {

google::protobuf::Timestamp to_timestamp(WallTime time);

class SandboxJournal {
 public:
  using Show = std::function<void()>;
  using Reply = std::function<void(Result<>)>;

  // Of a sandbox that nothing is stored of yet.
  SandboxJournal(Services& services, const std::string& sandbox_id, const v1::CreateSpec& spec);
  SandboxJournal(Services& services, const SandboxRecord& record);
  SandboxJournal(const SandboxJournal&) = delete;

  const std::string& sandbox_id() const { return handle_.sandbox_id(); }
  WallTime created_at() const { return created_at_; }
  const SandboxStatus& status() const { return status_; }
  const v1::SandboxHandle& handle() const { return handle_; }
  const std::shared_ptr<EventFeed>& feed() const { return feed_; }

  // Its latest change of state or end of an exec: from here its time to live is counted.
  const Moment& quiet_since() const { return quiet_since_; }

  // The time of something that happens now; it never goes back, whoever sets the date.
  WallTime now();
  // The event with its sandbox and its time. One without a state of its own gets the sandbox's; one
  // with another state changes that.
  Mutation entry(v1::SandboxEvent event);

  // Once the mutations are on disk: `show` is called, the events are published, `reply` is called,
  // all in one turn of the control thread. `reply` alone gets an error. Without a mutation it is
  // only a place in the queue. The journal lives until its last append has been answered.
  void append(std::vector<Mutation> mutations, Urgency urgency, Show show, Reply reply);

  // In the handle; once it is on disk.
  void show_isolation(const std::string& problem, bool is_paused);

 private:
  void show(const SandboxStatus& status, std::uint64_t newest_sequence);

  Services& services_;
  WallTime created_at_;
  SandboxStatus status_;
  WallTime newest_event_at_{};
  Moment quiet_since_;
  bool is_quiet_since_stored_ = true;
  v1::SandboxHandle handle_;
  std::shared_ptr<EventFeed> feed_;
};

}  // namespace agbox
