// SPDX-License-Identifier: Apache-2.0
// Removes what this instance has left in the engine and on the disk and no sandbox claims: what an
// engine made although its answer was lost, what a crash left between two steps, what somebody
// restored. Each removal is logged with its reason. What does not carry our instance's label, or as
// a bridge its name, is never looked at.
//
// It runs when the engine's event stream begins, after the start and after every gap, when the
// engine makes something that nobody claims, and again after a while where a call of it went wrong.
// What belongs to a create under way is claimed by it, so the two never meet.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/retry_pause.h"
#include "control/sandbox/operations/operation.h"
#include "control/services.h"
#include "model/sandbox/orphans.h"

namespace agbox {

// A primary container of our instance that the store does not know, for people to decide about.
struct UnknownPrimary {
  std::string sandbox_id;
  std::string container_id;
  std::string container_name;

  bool operator==(const UnknownPrimary&) const = default;
};

class Janitor {
 public:
  // Who claims what, as it is at the moment of asking.
  struct Claims {
    std::function<SandboxClaim(const std::string& sandbox_id)> of;
    // Every sandbox that the store has, deleted ones and those that cannot be read included.
    std::function<std::vector<std::string>()> sandbox_ids;
  };

  Janitor(Services& services, Claims claims);
  Janitor(const Janitor&) = delete;

  // The engine has made something just now, perhaps for a daemon that was killed while it asked for
  // it, and whose sandbox is gone since: what nobody claims is swept.
  void container_made(const std::string& container_id, const EngineLabels& labels);
  void network_made(const std::string& sandbox_id);
  // One sweep, or one more after that which is under way: that one may have looked already.
  void sweep();
  bool is_sweeping() const { return is_sweeping_; }
  // That have come to their end.
  unsigned sweeps() const { return sweeps_; }
  // Those of what the engine lists now.
  std::vector<UnknownPrimary> unknown_primaries_among(
      const std::vector<ContainerListed>& listed) const;
  // Of the latest sweep.
  const std::vector<UnknownPrimary>& unknown_primaries() const { return unknown_primaries_; }

 private:
  boost::asio::awaitable<void> run();
  boost::asio::awaitable<OperationResult<>> sweep_once();
  boost::asio::awaitable<OperationResult<>> sweep_containers(CallOptions options);
  // Nothing where it is not ours, or of no sandbox: that is nobody's business here.
  struct Judged {
    std::string sandbox_id;
    Judgement judgement;
  };
  std::optional<Judged> judge(const std::string& container_id, const EngineLabels& labels) const;
  boost::asio::awaitable<OperationResult<>> sweep_networks(CallOptions options);
  boost::asio::awaitable<OperationResult<>> sweep_bridges(CallOptions options);
  boost::asio::awaitable<OperationResult<>> sweep_guest_directories();
  boost::asio::awaitable<OperationResult<>> sweep_exec_logs();
  // Whether the sweep can go on after this removal: one that was refused harms no other.
  OperationResult<> allow(const OperationResult<>& removed) const;
  void report(UnknownPrimary primary, const std::string& reason);
  bool is_unknown_primarys(const std::string& sandbox_id) const;

  Services& services_;
  Claims claims_;
  Logger log_;
  bool is_sweeping_ = false;
  bool sweeps_again_ = false;
  unsigned sweeps_ = 0;
  RetryPause rest_;
  std::vector<UnknownPrimary> unknown_primaries_;
};

}  // namespace agbox
