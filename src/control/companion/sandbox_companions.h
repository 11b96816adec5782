// SPDX-License-Identifier: Apache-2.0
// The companions of one sandbox: its required and optional services and its companion containers,
// each kept running by a supervisor. Operations of the sandbox begin and end the supervision;
// between them it goes on by itself.
//
//   create, resume   begin(), network_is_up(), primary_is_up(), finish_required()
//   everything that stops, pauses or removes containers
//                    quiesce() first, so that nothing is started behind its back
//   afterwards       follow(): supervised again if they should run
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "async/condition.h"
#include "async/event.h"
#include "async/task_group.h"
#include "base/log.h"
#include "control/actor_services.h"
#include "control/companion/companion_guest.h"
#include "control/companion/companion_supervisor.h"
#include "control/companion/primary_hooks.h"
#include "control/sandbox/operations/operation.h"
#include "control/sandbox/sandbox_journal.h"
#include "model/sandbox/companion_plan.h"
#include "place/place.h"
#include "store/change.h"

namespace agbox {

class SandboxCompanions {
 public:
  // The facts' containers are what an earlier run of the daemon stored.
  SandboxCompanions(ActorServices& services, PrimaryHooks::Sandbox sandbox, SandboxExecs& execs,
                    Logger log);
  SandboxCompanions(const SandboxCompanions&) = delete;

  // --- operations ---
  // Ends the supervision, and returns once nothing is created or started any more. What was begun
  // in the engine is completed first.
  asio::awaitable<void> quiesce();
  // Only if they are not supervised. Nothing is created or started before network_is_up().
  void begin(CompanionBegin begin, Engine::Progress progress);
  bool awaits_network() const { return is_supervised_ && !has_network_; }
  // The sandbox's network exists and is isolated.
  void network_is_up();
  // The primary runs its workload, in this start.
  void primary_is_up(std::uint64_t start_count) { hooks_.primary_is_up(start_count); }
  // Returns once all required services are healthy, and their commands for the primary have run;
  // then they are reported as ready, in order.
  asio::awaitable<OperationResult<>> finish_required();
  // Returns once they do not run, or the engine refused. For operations, after quiesce().
  asio::awaitable<void> stop_containers();
  // Their containers, by name.
  std::map<std::string, store::v1::Container> containers() const;
  // They were stopped with their sandbox.
  void rest();
  // They are removed.
  void forget_containers();

  // --- execs ---
  // nullptr if there is no companion of that name.
  CompanionGuest* guest_of(const std::string& name) const;

  // --- between operations ---
  enum class Wanted {
    Run,
    Stop,   // their sandbox has failed, and nothing else will stop them
    End,    // it is being deleted: they are not supervised any more, and an operation removes them
    Leave,  // an operation decides
  };
  void follow(Wanted wanted);
  void may_have_changed(const std::string& name);
  // They are stopped until the network is isolated again: nothing else pauses them.
  void isolation_failed();
  void engine_is_back();
  // A container may exist that containers() does not have.
  bool is_creating() const;
  std::vector<Mutation> stored() const;
  // The sandbox is deleted: frees what only operations need.
  void forget();

  // --- reports of the guest ---
  PrimaryHooks& hooks() { return hooks_; }

 private:
  asio::awaitable<void> supervise(CompanionSupervisor& companion);
  void spawn_for_guest(asio::awaitable<void> work);
  asio::awaitable<void> run_for_guest(asio::awaitable<void> work);
  asio::awaitable<void> stop_all();
  asio::awaitable<Result<>> run_hooks(CompanionSupervisor& companion);
  void task_ended();
  bool may_start(const CompanionSupervisor& companion) const;

  ActorServices& services_;
  std::string sandbox_id_;
  Logger log_;
  Condition changed_;
  PrimaryHooks hooks_;
  std::vector<std::unique_ptr<CompanionSupervisor>> companions_;
  std::vector<std::unique_ptr<CompanionGuest>> guests_;
  bool has_network_ = false;
  // Supervisors, or the task that stops the containers of a failed sandbox.
  std::vector<Task> tasks_;
  std::size_t running_ = 0;
  std::vector<Task> guest_tasks_;
  std::size_t guests_running_ = 0;
  bool is_supervised_ = false;
  bool may_run_ = false;  // a container of them
  std::uint64_t engine_backs_ = 0;
  Event is_quiet_;  // nothing of both runs
};

}  // namespace agbox
