// SPDX-License-Identifier: Apache-2.0
// Connects sandboxes with the host's isolation. No sandbox starts before the isolation is in place;
// each is verified before its workload runs, and all live ones again after the rules have changed
// and when the engine is reachable again. While the rules cannot be put in place, live ones fail.
// The resolvers of all sandboxes stay reachable.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/retry_timer.h"
#include "async/task_group.h"
#include "base/log.h"
#include "base/result.h"
#include "base/thread_checker.h"
#include "model/network/ipv4.h"
#include "model/network/isolation_health.h"
#include "model/sandbox/work.h"
#include "place/place.h"
#include "store/records.h"

namespace agbox {

class SandboxIsolation {
 public:
  struct Options {
    store::v1::CreatedWith created_with;  // of new sandboxes
    // The sandboxes that may be running a workload now.
    std::function<std::vector<std::string>()> live_sandboxes;
    std::function<bool(const std::string& sandbox_id)> is_live;
    // Of a live sandbox; nullptr if it is gone.
    std::function<SandboxPlace*(const std::string& sandbox_id)> place_of;
    // The outcome of verifying a live sandbox; `from_inside`: its guest took part.
    std::function<void(const std::string& sandbox_id, const std::string& why)> on_failure;
    std::function<void(const std::string& sandbox_id, bool from_inside)> on_success;
  };

  SandboxIsolation(asio::io_context& io, Place& place, Options options, Logger log);
  SandboxIsolation(const SandboxIsolation&) = delete;

  // Begins to put it in place, once the resolvers of sandboxes are known. Retries until it is in
  // place.
  void start();
  // `remove_rules`: no remaining sandbox needs it.
  asio::awaitable<void> stop(bool remove_rules);

  // Returns when it is in place, or with the reason if the latest attempt failed. CANCELLED if the
  // caller was cancelled while waiting.
  asio::awaitable<Result<>> in_place();
  // The same for background work: waits until it is in place, however long that takes.
  asio::awaitable<Result<>> at_last_in_place();
  // For admission of new work: refused while the latest attempt to put it in place has failed.
  Result<> check() const;
  // From outside: before anything of a sandbox runs but on its network.
  asio::awaitable<Result<>> verify_network(SandboxPlace& place);
  asio::awaitable<Result<>> verify_starting(std::string sandbox_id, SandboxPlace& place);
  // The same for running sandboxes. The outcome is also reported to the sandbox.
  asio::awaitable<Verification> verify_live(std::string sandbox_id, SandboxPlace& place);
  // After a change that may affect all of them: verifies each as soon as its guest is connected.
  // health() reports those that fail.
  void verify_live_sandboxes();
  // One live sandbox, from outside if its guest is not connected.
  void verify_soon(const std::string& sandbox_id);
  void guest_connected(const std::string& sandbox_id);

  // The outcome of the sandbox's latest verification. A paused one, or one that may be, is verified
  // without its guest.
  struct Problem {
    std::string why;  // empty: none
    IsolationState::Paused paused = IsolationState::Paused::No;
    bool is_unverified = false;  // from inside, for too long; everything else holds
  };
  void set_problem(const std::string& sandbox_id, Problem problem);
  // nullptr: none.
  const Problem* problem_of(const std::string& sandbox_id) const;

  // Its start has completed: verifies it again if something changed since its verification.
  void sandbox_is_live(const std::string& sandbox_id);

  // New sandboxes use other resolvers.
  void new_resolvers(const store::v1::CreatedWith& created_with);
  // A sandbox uses these resolvers for as long as it exists.
  void keep_resolvers(const std::string& sandbox_id, const store::v1::CreatedWith& created_with);
  void forget(const std::string& sandbox_id);

  // Human-readable.
  IsolationHealth health() const;

 private:
  asio::awaitable<void> put_in_place();
  void set_outcome(Result<> outcome);
  std::vector<Ipv4Address> resolvers_of(const store::v1::CreatedWith& created_with) const;
  void release_resolvers(const std::string& sandbox_id);
  std::vector<Ipv4Address> wanted_resolvers() const;
  void resolvers_changed();
  asio::awaitable<void> apply_resolvers();
  void isolation_changed();
  void add_due(const std::string& sandbox_id);
  void verify_those_due();
  asio::awaitable<void> verify_one_by_one();
  std::optional<std::string> next_due();
  asio::awaitable<Verification> verification_of(const std::string& sandbox_id, SandboxPlace& place);
  void report(const std::string& sandbox_id, const Verification& attempt);
  bool is_paused(const std::string& sandbox_id) const;
  bool can_be_verified(const std::string& sandbox_id) const;
  asio::awaitable<void> verify_again(const std::string& sandbox_id);

  Place& place_;
  Options options_;
  Logger log_;
  std::optional<Result<>> outcome_;  // of the latest attempt to put it in place
  Event has_outcome_;
  Event is_in_place_;
  RetryTimer retry_timer_;
  std::map<std::string, std::vector<Ipv4Address>> resolvers_;  // by sandbox
  std::map<Ipv4Address, std::size_t> asked_by_;                // by how many sandboxes
  std::vector<Ipv4Address> applied_resolvers_;
  bool is_applying_ = false;
  // Sandboxes to verify again: once their guest is connected, or when it connects again. In order.
  std::vector<std::string> due_;
  std::set<std::string> not_waiting_for_guest_;  // verified from outside if it is not connected
  std::set<std::string> guest_awaited_;
  // Sandboxes verified during their start that are not live yet; true if something changed since.
  std::map<std::string, bool> starting_;
  std::string being_verified_;
  bool is_verifying_ = false;
  std::map<std::string, Problem> problems_;  // by sandbox
  ThreadChecker thread_;
  TaskGroup tasks_;
};

}  // namespace agbox
