// SPDX-License-Identifier: Apache-2.0
// A ReadContainerLogs call: checks the request, and sends the log piece by piece.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>

#include "control/control_loop.h"
#include "control/log/container_logs.h"
#include "rpc/open_streams.h"

namespace agbox {

// Called on the control thread. See ControlPlane::read_log().
using ReadLog = std::function<Task(ContainerLogs::Request request, ContainerLogs::Write write,
                                   std::function<void(Result<>)> done)>;

// Deletes itself at its end.
grpc::ServerWriteReactor<grpc::ByteBuffer>* open_log_stream(ControlLoop& loop, ReadLog read_log,
                                                            std::shared_ptr<OpenStreams> streams,
                                                            const grpc::ByteBuffer& request);

}  // namespace agbox
