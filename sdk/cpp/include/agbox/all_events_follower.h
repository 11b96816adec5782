// SPDX-License-Identifier: Apache-2.0
// Reads the events of all sandboxes in order and exactly once, across restarts of the daemon: when
// the stream ends or breaks, it resubscribes after the last cursor that it has seen.
//
//   v1::SubscribeEventsRequest request;
//   request.set_start(v1::EVENTS_START_OLDEST);  // or the cursor that was stored last
//   AllEventsFollower events(client, request);
//   while (auto message = events.next()) handle(*message), store(message->cursor());
#pragma once

#include <agbox/raw_client.h>
#include <agbox/reconnect_backoff.h>

#include <functional>
#include <optional>
#include <stop_token>

namespace agbox::sdk {

class AllEventsFollower {
 public:
  // The client must outlive the follower.
  AllEventsFollower(const RawClient& client, v1::SubscribeEventsRequest request,
                    FollowOptions options = {});

  // Blocks until the next message, which may have a cursor and no event. `caught_up` is returned
  // again after the connection was lost.
  Result<v1::SubscribeEventsResponse> next();

 private:
  void subscribe();

  const RawClient& client_;
  v1::SubscribeEventsRequest request_;
  ReconnectBackoff backoff_;
  std::optional<AllEventsStream> stream_;
  // Declared after the stream that it cancels, so that it is destroyed first.
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace agbox::sdk
