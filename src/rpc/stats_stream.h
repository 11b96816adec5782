// SPDX-License-Identifier: Apache-2.0
// A WatchStats call: checks the request, and sends one measurement after another.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "control/control_loop.h"
#include "control/stats/stats_sampler.h"
#include "rpc/open_streams.h"

namespace agbox {

// Called on the control thread. See ControlPlane::watch_stats().
using WatchStats =
    std::function<Task(std::string sandbox_id, std::chrono::nanoseconds interval,
                       StatsSampler::Write write, std::function<void(Result<>)> done)>;

// Deletes itself at its end.
grpc::ServerWriteReactor<grpc::ByteBuffer>* open_stats_stream(ControlLoop& loop, WatchStats watch,
                                                              std::shared_ptr<OpenStreams> streams,
                                                              const grpc::ByteBuffer& request);

}  // namespace agbox
