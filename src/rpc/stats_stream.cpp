// SPDX-License-Identifier: Apache-2.0
#include "rpc/stats_stream.h"

#include <utility>

#include "agbox/v1/service.grpc.pb.h"
#include "rpc/task_stream.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

struct StatsRequest {
  std::string sandbox_id;
  std::chrono::nanoseconds interval;
};

Result<StatsRequest> parse_stats_request(const grpc::ByteBuffer& request) {
  v1::WatchStatsRequest parsed;
  grpc::ByteBuffer bytes = request;
  if (!grpc::SerializationTraits<v1::WatchStatsRequest>::Deserialize(&bytes, &parsed).ok()) {
    return fail(reason::kInvalidArgument, "the request is not a WatchStatsRequest");
  }
  StatsRequest wanted{.sandbox_id = parsed.sandbox_id(), .interval = 1s};
  if (!parsed.has_interval()) return wanted;
  const auto& interval = parsed.interval();
  const bool is_duration = interval.nanos() >= 0 && interval.nanos() < 1'000'000'000;
  const bool is_in_range = interval.seconds() >= 1 && interval.seconds() <= 60 &&
                           (interval.seconds() < 60 || interval.nanos() == 0);
  if (!is_duration || !is_in_range) {
    return fail(reason::kInvalidArgument, "interval must be between 1 s and 60 s");
  }
  wanted.interval = std::chrono::seconds(interval.seconds()) + 1ns * interval.nanos();
  return wanted;
}

grpc::ByteBuffer to_stats_buffer(v1::SandboxStats stats) {
  v1::WatchStatsResponse response;
  *response.mutable_stats() = std::move(stats);
  grpc::ByteBuffer buffer;
  bool owns_buffer = false;
  // Serializing into memory does not fail.
  static_cast<void>(grpc::SerializationTraits<v1::WatchStatsResponse>::Serialize(response, &buffer,
                                                                                 &owns_buffer));
  return buffer;
}

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* open_stats_stream(ControlLoop& loop, WatchStats watch,
                                                              std::shared_ptr<OpenStreams> streams,
                                                              const grpc::ByteBuffer& request) {
  auto parsed = parse_stats_request(request);
  if (!parsed) {
    return TaskStream::open(loop, std::move(streams), std::unexpected(parsed.error()));
  }
  auto start = [watch = std::move(watch), parsed = std::move(*parsed)](
                   TaskStream::Write write, std::function<void(Result<>)> done) {
    return watch(
        parsed.sandbox_id, parsed.interval,
        [write = std::move(write)](v1::SandboxStats stats) {
          return write(to_stats_buffer(std::move(stats)));
        },
        std::move(done));
  };
  return TaskStream::open(loop, std::move(streams), TaskStream::Start(std::move(start)));
}

}  // namespace agbox
