// SPDX-License-Identifier: Apache-2.0
// The calls of agbox.v1.SandboxService. A method parses, posts and replies, without logic of its
// own.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>
#include <string>

#include "base/log.h"
#include "control/control_loop.h"
#include "control/control_plane.h"

namespace agbox {

// What Ping returns about this daemon.
struct DaemonIdentity {
  std::string version;
  std::string instance_id;
};

class SandboxService {
 public:
  virtual ~SandboxService() = default;

  // To register with a server.
  virtual grpc::Service& grpc_service() = 0;
  // Ends all streams with SHUTTING_DOWN, also those that begin later. On the control thread.
  virtual void end_streams() = 0;
};

std::unique_ptr<SandboxService> make_sandbox_service(DaemonIdentity identity, ControlLoop& loop,
                                                     ControlPlane& plane, Logger log);

}  // namespace agbox
