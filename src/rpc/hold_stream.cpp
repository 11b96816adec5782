// SPDX-License-Identifier: Apache-2.0
#include "rpc/hold_stream.h"

#include <google/protobuf/util/time_util.h>

#include <utility>

#include "agbox/v1/service.grpc.pb.h"
#include "rpc/task_stream.h"

namespace agbox {
namespace {

Result<std::string> parse_hold_request(const grpc::ByteBuffer& request) {
  v1::HoldSandboxRequest parsed;
  grpc::ByteBuffer bytes = request;
  if (grpc::SerializationTraits<v1::HoldSandboxRequest>::Deserialize(&bytes, &parsed).ok()) {
    return parsed.sandbox_id();
  }
  return fail(reason::kInvalidArgument, "the request is not a HoldSandboxRequest");
}

grpc::ByteBuffer to_hold_buffer(std::chrono::nanoseconds lease_ttl) {
  v1::HoldSandboxResponse response;
  *response.mutable_lease_ttl() =
      google::protobuf::util::TimeUtil::NanosecondsToDuration(lease_ttl.count());
  grpc::ByteBuffer buffer;
  bool owns_buffer = false;
  // Serializing into memory does not fail.
  static_cast<void>(grpc::SerializationTraits<v1::HoldSandboxResponse>::Serialize(response, &buffer,
                                                                                  &owns_buffer));
  return buffer;
}

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* open_hold_stream(ControlLoop& loop, HoldSandbox hold,
                                                             std::shared_ptr<OpenStreams> streams,
                                                             const grpc::ByteBuffer& request) {
  auto sandbox_id = parse_hold_request(request);
  if (!sandbox_id) {
    return TaskStream::open(loop, std::move(streams), std::unexpected(sandbox_id.error()));
  }
  auto start = [hold = std::move(hold), sandbox_id = std::move(*sandbox_id)](
                   TaskStream::Write write, std::function<void(Result<>)> done) {
    return hold(
        sandbox_id,
        [write = std::move(write)](std::chrono::nanoseconds lease_ttl) {
          return write(to_hold_buffer(lease_ttl));
        },
        std::move(done));
  };
  return TaskStream::open(loop, std::move(streams), TaskStream::Start(std::move(start)));
}

}  // namespace agbox
