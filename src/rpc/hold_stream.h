// SPDX-License-Identifier: Apache-2.0
// A HoldSandbox call: confirms the hold, and stays open until the sandbox is deleted.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "control/control_loop.h"
#include "control/directory.h"
#include "rpc/open_streams.h"

namespace agbox {

// Called on the control thread. See Directory::hold().
using HoldSandbox = std::function<Task(std::string sandbox_id, Directory::OnHeld on_held,
                                       std::function<void(Result<>)> done)>;

// Deletes itself at its end.
grpc::ServerWriteReactor<grpc::ByteBuffer>* open_hold_stream(ControlLoop& loop, HoldSandbox hold,
                                                             std::shared_ptr<OpenStreams> streams,
                                                             const grpc::ByteBuffer& request);

}  // namespace agbox
