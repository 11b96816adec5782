// SPDX-License-Identifier: Apache-2.0
#include "rpc/log_stream.h"

#include <chrono>
#include <string>
#include <utility>

#include "agbox/v1/service.grpc.pb.h"
#include "base/result.h"
#include "rpc/task_stream.h"

namespace agbox {
namespace {

// Years 1970 to 2200; the engine counts nanoseconds in 64 bits.
constexpr std::int64_t kLatestSecond = 7'258'118'400;

Result<WallTime> parse_since(const google::protobuf::Timestamp& since) {
  const bool is_valid = since.seconds() >= 0 && since.seconds() < kLatestSecond &&
                        since.nanos() >= 0 && since.nanos() < 1'000'000'000;
  if (!is_valid) {
    return fail(reason::kInvalidArgument, "since must be a time between 1970 and 2200");
  }
  return WallTime(std::chrono::seconds(since.seconds())) + std::chrono::nanoseconds(since.nanos());
}

Result<ContainerLogs::Request> parse_log_request(const grpc::ByteBuffer& request) {
  v1::ReadContainerLogsRequest parsed;
  grpc::ByteBuffer bytes = request;
  if (!grpc::SerializationTraits<v1::ReadContainerLogsRequest>::Deserialize(&bytes, &parsed).ok()) {
    return fail(reason::kInvalidArgument, "the request is not a ReadContainerLogsRequest");
  }
  if (parsed.stream() != v1::OUTPUT_STREAM_UNSPECIFIED &&
      parsed.stream() != v1::OUTPUT_STREAM_STDOUT && parsed.stream() != v1::OUTPUT_STREAM_STDERR) {
    return fail(reason::kInvalidArgument,
                "stream must be OUTPUT_STREAM_STDOUT, OUTPUT_STREAM_STDERR or, for both, "
                "OUTPUT_STREAM_UNSPECIFIED");
  }
  LogQuery query{.with_stdout = parsed.stream() != v1::OUTPUT_STREAM_STDERR,
                 .with_stderr = parsed.stream() != v1::OUTPUT_STREAM_STDOUT,
                 .follow = parsed.follow()};
  if (parsed.has_since()) {
    AGBOX_TRY(since, parse_since(parsed.since()));
    query.since = since;
  }
  if (parsed.has_tail()) query.tail = parsed.tail();
  if (!parsed.cursor().empty()) {
    AGBOX_TRY(after, parse_cursor(parsed.cursor()));
    query.after = after;
  }
  return ContainerLogs::Request{
      .sandbox_id = parsed.sandbox_id(), .container = parsed.container(), .query = query};
}

grpc::ByteBuffer to_log_buffer(LogPiece piece) {
  v1::ReadContainerLogsResponse response;
  if (!piece.data.empty()) response.set_stream(piece.stream);
  const auto since_epoch = piece.end.time.time_since_epoch();
  if (since_epoch.count() != 0) response.set_cursor(cursor_of(piece.end));
  if (!piece.data.empty()) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
    response.mutable_time()->set_seconds(seconds.count());
    response.mutable_time()->set_nanos(static_cast<std::int32_t>((since_epoch - seconds).count()));
  }
  response.set_data(std::move(piece.data));
  grpc::ByteBuffer buffer;
  bool owns_buffer = false;
  // Serializing into memory does not fail.
  static_cast<void>(grpc::SerializationTraits<v1::ReadContainerLogsResponse>::Serialize(
      response, &buffer, &owns_buffer));
  return buffer;
}

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* open_log_stream(ControlLoop& loop, ReadLog read_log,
                                                            std::shared_ptr<OpenStreams> streams,
                                                            const grpc::ByteBuffer& request) {
  auto parsed = parse_log_request(request);
  if (!parsed) {
    return TaskStream::open(loop, std::move(streams), std::unexpected(parsed.error()));
  }
  auto start = [read_log = std::move(read_log), parsed = std::move(*parsed)](
                   TaskStream::Write write, std::function<void(Result<>)> done) {
    return read_log(
        parsed,
        [write = std::move(write)](LogPiece piece) {
          return write(to_log_buffer(std::move(piece)));
        },
        std::move(done));
  };
  return TaskStream::open(loop, std::move(streams), TaskStream::Start(std::move(start)));
}

}  // namespace agbox
