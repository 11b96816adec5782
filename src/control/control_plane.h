// SPDX-License-Identifier: Apache-2.0
// Composes everything on the control thread: the engine, the place of the sandboxes, and the
// directory of sandboxes that uses them.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/boot_timer.h"
#include "async/semaphore.h"
#include "async/task_group.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "control/actor_services.h"
#include "control/all_events.h"
#include "control/control_loop.h"
#include "control/directory.h"
#include "control/doctor/diagnosis.h"
#include "control/engine_status.h"
#include "control/log/container_logs.h"
#include "control/sandbox/sandbox_isolation.h"
#include "control/stats/stats_sampler.h"
#include "control/upkeep/deadlines.h"
#include "control/upkeep/janitor.h"
#include "engine/engine.h"
#include "model/network/ipv4.h"
#include "model/sandbox/time_to_live.h"
#include "place/place.h"
#include "store/store.h"

namespace agbox {

struct ControlOptions {
  std::filesystem::path lock_file{};  // held by the daemon
  TimesToLive ttls{};
  bool pauses_unisolated = true;  // isolation.on_failure
  // How long calls wait after the start for an engine that accepts connections but does not answer.
  // Clients have a timeout of 5 s.
  std::chrono::milliseconds first_answer_timeout{1500};
  store::v1::CreatedWith created_with;  // configuration that new sandboxes keep
};

class ControlPlane final : private EngineListener {
 public:
  // Loads the stored sandboxes and continues their operations. The engine need not be reachable
  // yet. Engine and place must outlive the plane, which has exclusive use of them until the end of
  // shut_down().
  static Result<std::unique_ptr<ControlPlane>> start(ControlLoop& loop, Store& store,
                                                     const Clock& clock, Engine& engine,
                                                     Place& place, ControlOptions options,
                                                     Logger log);

  Directory& directory() { return directory_; }
  // nullopt while none is reachable.
  const std::optional<ReachableEngine>& engine() const { return engine_status_.now(); }
  IsolationHealth isolation() const { return isolation_.health(); }
  std::string limits_shortcoming() { return services_.place.limits_shortcoming(); }
  Janitor& janitor() { return janitor_; }
  Deadlines& restarts() { return restarts_; }
  Deadlines& exec_waits() { return exec_waits_; }
  Deadlines& exec_timeouts() { return exec_timeouts_; }
  Deadlines& verifications() { return verifications_; }
  Deadlines& leases() { return leases_; }

  // Runs the checks of `agbox doctor`.
  void diagnose(std::vector<std::string> images, Directory::Reply<v1::DiagnoseResponse> reply);

  // Passes the log of a container to `write`, piece by piece, and its end to `done`. Cancel the
  // task if the reader goes away.
  Task read_log(ContainerLogs::Request request, ContainerLogs::Write write,
                Directory::Reply<void> done);

  void get_stats(const std::string& sandbox_id, Directory::Reply<v1::SandboxStats> reply);
  // See StatsSampler::watch(). Cancel the task if the client goes away.
  Task watch_stats(std::string sandbox_id, std::chrono::nanoseconds interval,
                   StatsSampler::Write write, Directory::Reply<void> done);

  // Completes the calls that wait for anything but the store, and deletes no sandbox because its
  // clients are disconnected; call before the server shuts down.
  void release_waiting_calls();
  // Cancels everything in progress; the next start of the daemon continues it. `done` is called
  // when nothing runs any more.
  void shut_down(std::function<void()> done);

 private:
  ControlPlane(ControlLoop& loop, Store& store, const Clock& clock, Engine& engine, Place& place,
               ControlOptions options, Logger log);
  void reachable(const ReachableEngine& engine) override;
  void unreachable(std::string problem) override;
  void reconcile_due() override;
  void container_may_have_ended(const std::string& sandbox_id) override;
  void companion_may_have_changed(const std::string& sandbox_id, const std::string& name) override;
  void container_changed(const std::string& sandbox_id) override {
    logs_.container_changed(sandbox_id);
  }
  void object_created(const std::string& sandbox_id) override;
  void sweep_due() override { janitor_.sweep(); }
  void use_resolvers(const std::vector<Ipv4Address>& resolvers);
  boost::asio::awaitable<void> diagnose_and_reply(std::vector<std::string> images,
                                                  Directory::Reply<v1::DiagnoseResponse> reply);
  boost::asio::awaitable<void> end_everything(std::function<void()> done);

  Logger log_;
  EngineStatus engine_status_;
  SandboxIsolation isolation_;
  Semaphore starts_;
  Semaphore inspections_;
  RunningExecs execs_;
  std::shared_ptr<AllEvents> all_events_;  // shared with its subscriptions
  TaskGroup operations_;
  Deadlines deadlines_;
  Deadlines restarts_;
  Deadlines exec_waits_;
  Deadlines exec_timeouts_;
  Deadlines verifications_;
  Deadlines leases_;
  OperationServices operation_services_;
  ActorServices services_;
  bool was_engine_lost_ = false;  // since its event stream last began
  Directory directory_;
  ContainerLogs logs_;
  StatsSampler stats_;
  Janitor janitor_;
  Diagnosis diagnosis_;
  BootTimer first_answer_;
  TaskGroup watches_;
  bool takes_diagnoses_ = true;
  TaskGroup diagnoses_;
  TaskGroup ending_;
};

}  // namespace agbox
