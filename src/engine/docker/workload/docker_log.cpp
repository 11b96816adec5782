// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/workload/docker_log.h"

#include <chrono>
#include <deque>
#include <utility>
#include <vector>

#include "engine/docker/api/engine_call.h"
#include "engine/docker/api/log_frames.h"

namespace agbox {
namespace {

class DockerLog final : public ContainerLog {
 public:
  DockerLog(EngineStream stream, const LogQuery& query)
      : stream_(std::move(stream)), frames_(query.after), follows_(query.follow) {}

  EngineAwaitable<std::optional<LogPiece>> read() override {
    while (pieces_.empty()) {
      // A log that is followed may be silent for as long as its container runs.
      if (!follows_) {
        stream_.set_deadline(std::chrono::steady_clock::now() +
                             *route_of(EngineCall::ContainerLogs).deadline);
      }
      AGBOX_CO_TRY(bytes, co_await stream_.read_some());
      // The reader of the last piece may have taken any time, and so may that of the next.
      stream_.set_deadline(std::nullopt);
      if (bytes.empty()) co_return std::nullopt;
      AGBOX_CO_TRY(pieces, frames_.feed(bytes));
      std::ranges::move(pieces, std::back_inserter(pieces_));
    }
    LogPiece piece = std::move(pieces_.front());
    pieces_.pop_front();
    co_return piece;
  }

 private:
  EngineStream stream_;
  LogFrames frames_;
  std::deque<LogPiece> pieces_;  // of one read of the stream
  bool follows_;
};

}  // namespace

EngineAwaitable<std::unique_ptr<ContainerLog>> open_container_log(EngineClient& client,
                                                                  ContainerId container,
                                                                  LogQuery query) {
  auto stream = co_await client.open_log(container.container_id, query,
                                         {.deadline = {}, .expected_engine = container.engine_id});
  // Its only conflict is that the container is being removed.
  if (!stream && stream.error().http_status() == 409) {
    co_return engine_fail(EngineErrorKind::NotFound, stream.error().message());
  }
  if (!stream) co_return std::unexpected(std::move(stream.error()));
  co_return std::make_unique<DockerLog>(std::move(*stream), query);
}

}  // namespace agbox
