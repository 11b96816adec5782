// SPDX-License-Identifier: Apache-2.0
#include <agbox/container_log_follower.h>

#include <utility>

namespace agbox::sdk {

namespace {

std::string container_title(const v1::ReadContainerLogsRequest& request) {
  const std::string name = request.container().empty() ? "primary" : request.container();
  return "log of container " + name + " of sandbox " + request.sandbox_id();
}

// The daemon waits for an engine that it has lost. One that is unreachable from the beginning is an
// error to report.
bool is_of_the_engine(const Error& error) {
  return error.reason == "ENGINE_UNAVAILABLE" || error.reason == "ENGINE_TIMEOUT";
}

}  // namespace

ContainerLogFollower::ContainerLogFollower(const RawClient& client,
                                           v1::ReadContainerLogsRequest request,
                                           FollowOptions options)
    : client_(client),
      request_(std::move(request)),
      backoff_(client, container_title(request_), std::move(options)) {}

Result<std::optional<v1::ReadContainerLogsResponse>> ContainerLogFollower::next() {
  while (true) {
    if (backoff_.is_stopped()) return std::unexpected(backoff_.stopped());
    if (!stream_) open();
    auto piece = stream_->next();
    if (piece && !*piece) return std::nullopt;
    if (piece) {
      if (!(*piece)->cursor().empty()) request_.set_cursor((*piece)->cursor());
      backoff_.reset();
      if ((*piece)->data().empty()) continue;
      return std::move(*piece);
    }
    on_stop_.reset();
    stream_.reset();
    if (is_of_the_engine(piece.error())) return std::unexpected(piece.error());
    if (auto waited = backoff_.wait_after(piece.error()); !waited) {
      return std::unexpected(waited.error());
    }
  }
}

void ContainerLogFollower::open() {
  stream_.emplace(client_.read_container_logs(request_));
  on_stop_.emplace(backoff_.stop(), [this] { stream_->cancel(); });
}

}  // namespace agbox::sdk
