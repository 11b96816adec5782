// SPDX-License-Identifier: Apache-2.0
// The gRPC server: our service, gRPC's health and reflection services, on connections accepted by
// our listener.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "base/log.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "control/control_loop.h"
#include "rpc/sandbox_service.h"

namespace agbox {

class RpcServer {
 public:
  static Result<std::unique_ptr<RpcServer>> start(ControlLoop& loop, ControlPlane& plane,
                                                  DaemonIdentity identity, const Logger& log);
  ~RpcServer();

  // Serves one connected, non-blocking stream socket.
  void serve(UniqueFd connection);

  // Refuses new calls, ends streams with SHUTTING_DOWN, waits for running calls, cancels what is
  // left after `grace` (clients that do not read), then calls `done` on the control thread. Does
  // not block that thread, which running calls need.
  void shut_down(std::chrono::milliseconds grace, std::function<void()> done);

 private:
  struct Running;
  RpcServer(ControlLoop& loop, std::unique_ptr<Running> running);

  ControlLoop& loop_;
  std::unique_ptr<Running> running_;
  std::jthread shutdown_;  // grpc::Server::Shutdown blocks and has no asynchronous form
};

}  // namespace agbox
