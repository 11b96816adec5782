// SPDX-License-Identifier: Apache-2.0
// What sandboxes have to do with the host's isolation: nothing of theirs begins before it is in
// place, each proves it before anything of its caller runs, all that are live prove it again after
// a repair and when the engine comes back, and the resolvers of all of them stay within reach.
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
#include "async/retry_pause.h"
#include "async/task_group.h"
#include "base/log.h"
#include "base/result.h"
#include "base/thread_checker.h"
#include "model/network/ipv4.h"
#include "model/network/isolation_health.h"
#include "place/place.h"
#include "store/records.h"

namespace agbox {

class SandboxIsolation {
 public:
  struct Options {
    store::v1::CreatedWith created_with;  // of sandboxes to come
    // The sandboxes in which something may run now.
    std::function<std::vector<std::string>()> live_sandboxes;
    std::function<bool(const std::string& sandbox_id)> is_live;
    // Of a live sandbox; nullptr if it is gone.
    std::function<SandboxPlace*(const std::string& sandbox_id)> place_of;
    // What the verification of a live sandbox showed; `from_inside`: its guest took part.
    std::function<void(const std::string& sandbox_id, const std::string& why)> on_failure;
    std::function<void(const std::string& sandbox_id, bool from_inside)> on_success;
  };

  SandboxIsolation(asio::io_context& io, Place& place, Options options, Logger log);
  SandboxIsolation(const SandboxIsolation&) = delete;

  // Begins to put it in place, once it is known which resolvers sandboxes have. Where that fails it
  // is tried again until it is in place.
  void start();
  // `remove_rules`: no sandbox is left that needs it.
  asio::awaitable<void> stop(bool remove_rules);

  // Comes back when it is in place; why not, where it could not be put there yet. CANCELLED where
  // the caller was cancelled while it waited.
  asio::awaitable<Result<>> in_place();
  // The same for what nobody waits for: comes back when it is in place, whenever that may be.
  asio::awaitable<Result<>> at_last_in_place();
  // For the door: refused while it is known that it could not be put in place.
  Result<> check() const;
  asio::awaitable<Result<>> prove(std::string sandbox_id, SandboxPlace& place);
  // The same, for those that run already. The outcome is reported to the sandbox too.
  asio::awaitable<Verification> try_to_prove(std::string sandbox_id, SandboxPlace& place);
  // After a change that may concern all of them, each as soon as its guest is there. One that
  // cannot is told by health().
  void prove_live_sandboxes();
  // One live sandbox, as soon as its guest is there or if it is paused.
  void verify(const std::string& sandbox_id);
  void guest_connected(const std::string& sandbox_id);

  // What the sandbox's latest verification showed. A paused one is verified without its guest.
  struct Problem {
    std::string why;  // empty: none
    bool is_paused = false;
  };
  void set_problem(const std::string& sandbox_id, Problem problem);
  // nullptr: none.
  const Problem* problem_of(const std::string& sandbox_id) const;

  // One that was started: what changed since its proof is proven now.
  void sandbox_is_live(const std::string& sandbox_id);

  // Sandboxes to come ask others.
  void new_resolvers(const store::v1::CreatedWith& created_with);
  // A sandbox asks these for as long as it exists.
  void keep_resolvers(const std::string& sandbox_id, const store::v1::CreatedWith& created_with);
  void forget(const std::string& sandbox_id);

  // For people.
  IsolationHealth health() const;

 private:
  asio::awaitable<void> put_in_place();
  void tell_whether_in_place(Result<> outcome);
  std::vector<Ipv4Address> resolvers_of(const store::v1::CreatedWith& created_with) const;
  void release_resolvers(const std::string& sandbox_id);
  std::vector<Ipv4Address> wanted_resolvers() const;
  void resolvers_changed();
  asio::awaitable<void> tell_resolvers();
  void prove_those_due();
  asio::awaitable<void> prove_one_by_one();
  std::optional<std::string> next_due();
  asio::awaitable<Verification> verification_of(const std::string& sandbox_id, SandboxPlace& place);
  void report(const std::string& sandbox_id, const Verification& attempt);
  bool is_paused(const std::string& sandbox_id) const;
  bool can_be_proven(const std::string& sandbox_id) const;
  asio::awaitable<void> prove_again(const std::string& sandbox_id);

  Place& place_;
  Options options_;
  Logger log_;
  std::optional<Result<>> outcome_;  // of the latest try to put it in place
  Event has_outcome_;
  Event is_in_place_;
  RetryPause retry_pause_;
  std::map<std::string, std::vector<Ipv4Address>> resolvers_;  // by sandbox
  std::map<Ipv4Address, std::size_t> asked_by_;                // how many sandboxes
  std::vector<Ipv4Address> told_resolvers_;
  bool is_telling_ = false;
  // Sandboxes that are to prove it again: as soon as their guest is there, or when another comes.
  std::set<std::string> due_;
  std::set<std::string> guest_awaited_;
  // Those that have proven it at their start and are not live yet; whether something changed since.
  std::map<std::string, bool> starting_;
  std::string being_proven_;
  bool is_proving_ = false;
  std::map<std::string, Problem> problems_;  // by sandbox
  ThreadChecker thread_;
  TaskGroup tasks_;
};

}  // namespace agbox
