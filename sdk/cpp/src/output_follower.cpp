// SPDX-License-Identifier: Apache-2.0
#include <agbox/output_follower.h>

#include <utility>

namespace agbox::sdk {

OutputFollower::OutputFollower(const RawClient& client, std::string exec_id,
                               v1::OutputStream stream, FollowOptions options, OutputExtent extent,
                               std::uint64_t offset)
    : client_(client),
      offset_(offset),
      backoff_(client, "output stream of exec " + exec_id, std::move(options)) {
  request_.set_exec_id(std::move(exec_id));
  request_.set_stream(stream);
  request_.set_follow(extent == OutputExtent::UntilExit);
}

Result<std::optional<std::string>> OutputFollower::next() {
  while (true) {
    if (backoff_.is_stopped()) return std::unexpected(backoff_.stopped());
    if (!stream_) open();
    auto chunk = stream_->next();
    if (chunk && !*chunk) return std::nullopt;
    if (chunk) {
      std::string& data = *(*chunk)->mutable_data();
      offset_ += data.size();
      backoff_.reset();
      return std::move(data);
    }
    on_stop_.reset();
    stream_.reset();
    if (auto waited = backoff_.wait_after(chunk.error()); !waited) {
      return std::unexpected(waited.error());
    }
  }
}

void OutputFollower::open() {
  request_.set_offset(offset_);
  stream_.emplace(client_.read_exec_output(request_));
  on_stop_.emplace(backoff_.stop(), [this] { stream_->cancel(); });
}

}  // namespace agbox::sdk
