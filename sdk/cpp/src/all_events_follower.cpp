// SPDX-License-Identifier: Apache-2.0
#include <agbox/all_events_follower.h>

#include <utility>

namespace agbox::sdk {

AllEventsFollower::AllEventsFollower(const RawClient& client, v1::SubscribeEventsRequest request,
                                     FollowOptions options)
    : client_(client),
      request_(std::move(request)),
      backoff_(client, "event stream", std::move(options)) {}

Result<v1::SubscribeEventsResponse> AllEventsFollower::next() {
  while (true) {
    if (backoff_.is_stopped()) return std::unexpected(backoff_.stopped());
    if (!stream_) subscribe();
    auto message = stream_->next();
    if (message && *message) {
      request_.set_cursor((*message)->cursor());
      backoff_.reset();
      return std::move(**message);
    }
    on_stop_.reset();
    stream_.reset();
    const std::optional<Error> loss = message ? std::nullopt : std::optional(message.error());
    if (auto waited = backoff_.wait_after(loss); !waited) return std::unexpected(waited.error());
  }
}

void AllEventsFollower::subscribe() {
  stream_.emplace(client_.subscribe_events(request_));
  on_stop_.emplace(backoff_.stop(), [this] { stream_->cancel(); });
}

}  // namespace agbox::sdk
