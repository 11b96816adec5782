// SPDX-License-Identifier: Apache-2.0
// The daemon after its configuration is read: lock, store, socket, serve, shut down. Members are
// declared in start order and destroyed in reverse.
#pragma once

#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <optional>
#include <string_view>

#include "async/worker_thread.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "control/control_loop.h"
#include "control/control_plane.h"
#include "daemon/configuration.h"
#include "daemon/exit_signals.h"
#include "daemon/host_lock.h"
#include "daemon/runtime_directory.h"
#include "daemon/service_manager.h"
#include "engine/docker/docker_engine.h"
#include "isolation/firewall_isolation.h"
#include "paths/fixed_paths.h"
#include "place/local/local_place.h"
#include "rpc/server.h"
#include "rpc/unix_listener.h"
#include "store/store.h"

namespace agbox {

class Daemon {
 public:
  Daemon(FixedPaths paths, Configuration configuration, Environment environment, Logger log);

  // Serves until SIGTERM or SIGINT; returns the process's exit code.
  int run();

 private:
  Result<> acquire_lock();
  Result<> open_store();
  Result<> start_control();
  Result<> start_serving();
  int exit_with_error(std::string_view step, const Error& error);

  void wait_for_hang_up();
  void shut_down();

  FixedPaths paths_;
  Configuration configuration_;
  Environment environment_;
  Logger log_;
  SystemClock clock_;
  ServiceManager service_manager_;
  ControlLoop loop_;
  ExitSignals exit_signals_;
  asio::signal_set hang_ups_;
  std::optional<RuntimeDirectory> directory_;
  std::optional<HostLock> lock_;
  std::unique_ptr<Store> store_;
  WorkerThread firewall_thread_;
  asio::thread_pool blocking_threads_;
  std::unique_ptr<DockerEngine> engine_;
  std::unique_ptr<FirewallIsolation> isolation_;
  std::unique_ptr<LocalPlace> place_;
  std::unique_ptr<ControlPlane> plane_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<UnixListener> listener_;
};

}  // namespace agbox
