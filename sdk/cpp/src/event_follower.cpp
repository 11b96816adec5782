// SPDX-License-Identifier: Apache-2.0
#include <agbox/event_follower.h>

#include <utility>

namespace agbox::sdk {

EventFollower::EventFollower(const RawClient& client, std::string sandbox_id, std::uint64_t after,
                             FollowOptions options)
    : client_(client),
      sandbox_id_(std::move(sandbox_id)),
      last_seen_(after),
      backoff_(client, "sandbox event stream", std::move(options)) {}

Result<v1::SandboxEvent> EventFollower::next() {
  while (true) {
    if (backoff_.is_stopped()) return std::unexpected(backoff_.stopped());
    if (!stream_) subscribe();
    auto event = stream_->next();
    if (event && *event) {
      if ((*event)->sequence() <= last_seen_) continue;
      last_seen_ = (*event)->sequence();
      backoff_.reset();
      return std::move(**event);
    }
    on_stop_.reset();
    stream_.reset();
    const std::optional<Error> loss = event ? std::nullopt : std::optional(event.error());
    if (auto waited = backoff_.wait_after(loss); !waited) return std::unexpected(waited.error());
  }
}

void EventFollower::subscribe() {
  v1::SubscribeSandboxEventsRequest request;
  request.set_sandbox_id(sandbox_id_);
  request.set_from_sequence(last_seen_);
  stream_.emplace(client_.subscribe_sandbox_events(request));
  on_stop_.emplace(backoff_.stop(), [this] { stream_->cancel(); });
}

}  // namespace agbox::sdk
