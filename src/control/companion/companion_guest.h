// SPDX-License-Identifier: Apache-2.0
// The guest of one companion: what runs execs in its container. It is started when the first exec
// needs it, next to what the container runs, and lives as long as the container; so a companion
// that runs no execs has none. It is no PID 1: root inside can end or stop it, and then its execs
// have failed, but not connect in its place; see decision 0045.
//
//   summon()  start it through the engine, expect that process, Go   is_ready()
//   lost      and not back in time: its execs have ended, and the next summon() starts another
//
// What a later daemon must know to take it over, its secret and its process, is in the record of
// the container, and is valid for one start of it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>

#include "async/condition.h"
#include "async/task_group.h"
#include "base/log.h"
#include "control/actor_services.h"
#include "control/sandbox/operations/operation.h"
#include "control/sandbox/sandbox_journal.h"
#include "model/guest/guest_listener.h"
#include "model/sandbox/companion.h"
#include "place/place.h"

namespace agbox {

class SandboxExecs;

class CompanionGuest final : private GuestListener {
 public:
  // What it needs of its sandbox.
  struct Sandbox {
    const SandboxFacts& facts;  // always current
    SandboxJournal& journal;
    SandboxExecs& execs;
    // Otherwise containers are being stopped, paused or removed, and nothing is begun.
    std::function<bool()> is_supervised;
    // Cancels and joins it before anything is stopped, paused or removed.
    std::function<void(asio::awaitable<void> work)> spawn;
  };

  CompanionGuest(ActorServices& services, Sandbox sandbox, CompanionFacts& facts, Logger log);
  CompanionGuest(const CompanionGuest&) = delete;
  ~CompanionGuest();

  const std::string& name() const { return name_; }
  SandboxPlace& place() const { return *place_; }
  // It takes execs now.
  bool is_ready() const { return has_joined_ && place_->is_connected(); }
  // Variables of the companion.
  const google::protobuf::Map<std::string, std::string>& envs() const {
    return facts_->spec.envs();
  }

  // Before its container is created: what that has to see.
  asio::awaitable<OperationResult<Attachments>> prepare();
  // One that is ready now, or may be: an earlier daemon has started it in this start of the
  // container.
  bool may_have_execs() const { return !facts_->container.secret().empty(); }
  // An exec waits for it.
  void summon();
  // It was asked to cancel this exec. Root inside can stop its guest (SIGSTOP), so one that does
  // not end the exec in time is lost.
  void expect_end(const std::string& exec_id);
  // Its companion is supervised, possibly again, or by a later daemon: what was wanted is wanted.
  void resume();
  // Its container has ended, or is about to be started.
  void container_ended(const std::string& how);
  // Its container was stopped with its sandbox, which ends the execs.
  void rest();
  // Nothing is started any more, and its facts are freed.
  void forget();

 private:
  void guest_connected(const GuestHello& hello) override;
  void guest_lost(const std::string& why) override;
  void exec_ended(const ExecEnd& end) override;
  void exec_not_sent(const std::string& exec_id, const std::string& why) override;
  void exec_truncated(const std::string& exec_id) override;

  asio::awaitable<void> join();
  // An error is for people.
  asio::awaitable<OperationResult<GuestHello>> begin();
  asio::awaitable<void> reconnect();
  asio::awaitable<void> wait_for_return();
  asio::awaitable<void> wait_for_end(std::string exec_id);
  asio::awaitable<Result<>> store();
  void lost(const std::string& how);
  // As if its container were the primary: the place asks for no more.
  SandboxFacts facts_for_place() const;

  ActorServices& services_;
  Sandbox sandbox_;
  const std::string name_;
  CompanionFacts* facts_;  // nullptr once it is forgotten
  Logger log_;
  std::unique_ptr<SandboxPlace> place_;
  Condition changed_;
  bool has_joined_ = false;
  bool is_busy_ = false;  // it is being started, or waited for
};

}  // namespace agbox
