// SPDX-License-Identifier: Apache-2.0
// Everything of the control thread, put together: the doors to engine, guests and firewall, and the
// directory of sandboxes that works with them.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/semaphore.h"
#include "async/task_group.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "control/control_loop.h"
#include "control/directory.h"
#include "control/doctor/diagnosis.h"
#include "control/sandbox/operations/subnet_pool.h"
#include "control/sandbox/sandbox_isolation.h"
#include "control/services.h"
#include "control/upkeep/deadlines.h"
#include "control/upkeep/janitor.h"
#include "engine/docker/api/engine_client.h"
#include "engine/docker/images/image_pulls.h"
#include "engine/docker/images/registry_auth.h"
#include "guestlink/guest_links.h"
#include "isolation/host_isolation.h"
#include "model/network/ipv4.h"
#include "model/sandbox/time_to_live.h"
#include "paths/fixed_paths.h"
#include "store/store.h"

namespace agbox {

struct ControlOptions {
  Environment environment;
  std::string engine_socket;
  std::filesystem::path state_root;
  std::filesystem::path guest_program;  // as it was installed; a copy of it goes into containers
  Ipv4Network address_pool;
  std::filesystem::path lock_file{};  // which the daemon holds
  // That name the resolvers of sandboxes to come; none where the configuration says them.
  std::vector<std::filesystem::path> resolver_files{};
  TimesToLive ttls{};
  bool pauses_unisolated = true;        // isolation.on_failure
  store::v1::CreatedWith created_with;  // what new sandboxes keep of the configuration
  guestlink::LinkLimits guest_limits{};
};

class ControlPlane {
 public:
  // Loads what is stored and goes on with it. The engine need not be there yet; the isolation,
  // which outlives the plane, is started and ended by it. What may hang in a disk or in the kernel
  // is done on `blocking`.
  static Result<std::unique_ptr<ControlPlane>> start(ControlLoop& loop,
                                                     asio::any_io_executor blocking, Store& store,
                                                     const Clock& clock, HostIsolation& isolation,
                                                     ControlOptions options, Logger log);

  Directory& directory() { return directory_; }
  // The engine that answers now; nothing while none does.
  const std::optional<EngineIdentity>& engine() const { return services_.engine_now; }
  IsolationHealth isolation() const { return isolation_.health(); }
  Janitor& janitor() { return janitor_; }
  Deadlines& restarts() { return restarts_; }
  Deadlines& verifications() { return verifications_; }

  // Runs the checks of `agbox doctor`.
  void diagnose(std::vector<std::string> images, Directory::Reply<v1::DiagnoseResponse> reply);

  // Answers those who wait for others than the store; before the server shuts down.
  void answer_who_waits();
  // Gives up everything that is under way; the next start goes on with it. `done` comes when
  // nothing runs any more.
  void shut_down(std::function<void()> done);

 private:
  ControlPlane(ControlLoop& loop, const asio::any_io_executor& blocking, Store& store,
               const Clock& clock, HostIsolation& isolation, ControlOptions options, Logger log);
  void engine_seen(const EngineIdentity& engine);
  void engine_lost(const EngineError& error);
  void engine_watched();
  void engine_told(const EngineEvent& event);
  void network_made(const EngineEvent& event);
  guestlink::GuestLinksEvents guest_events();
  boost::asio::awaitable<void> watch_resolvers(std::vector<std::filesystem::path> files);
  void follow_resolvers(const std::vector<std::filesystem::path>& files);
  boost::asio::awaitable<void> diagnose_and_reply(std::vector<std::string> images,
                                                  Directory::Reply<v1::DiagnoseResponse> reply);
  boost::asio::awaitable<void> end_everything(std::function<void()> done);

  Logger log_;
  EngineClient engine_;
  RegistryAuth registry_auth_;
  ImagePulls pulls_;
  guestlink::GuestLinks guests_;
  SandboxIsolation isolation_;
  SubnetPool subnets_;
  Semaphore starts_;
  Semaphore looks_;
  RunningExecs execs_;
  SpareFiles spare_files_;
  TaskGroup operations_;
  TaskGroup calls_;
  Deadlines deadlines_;
  Deadlines restarts_;
  Deadlines verifications_;
  Services services_;
  std::optional<EngineIdentity> engine_seen_;  // the latest, whether or not it answers now
  bool was_engine_lost_ = false;               // since its events were last watched
  Directory directory_;
  Janitor janitor_;
  Diagnosis diagnosis_;
  TaskGroup watches_;
  bool takes_diagnoses_ = true;
  TaskGroup diagnoses_;
  TaskGroup ending_;
};

}  // namespace agbox
