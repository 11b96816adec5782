// SPDX-License-Identifier: Apache-2.0
// Reads the events of one sandbox in order and exactly once, across restarts of the daemon: when
// the stream ends or breaks, it resubscribes after the last event that it has seen.
//
//   EventFollower events(client, id, handle.last_event_sequence());
//   while (auto event = events.next()) show(*event);
#pragma once

#include <agbox/raw_client.h>
#include <agbox/reconnect_backoff.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace agbox::sdk {

class EventFollower {
 public:
  // Reads the events after the sequence number `after`; 0 means all. The client must outlive the
  // follower.
  EventFollower(const RawClient& client, std::string sandbox_id, std::uint64_t after,
                FollowOptions options = {});

  // Blocks until the next event. ErrorKind::SandboxNotFound may also mean that the history was
  // removed, some time after the sandbox was deleted.
  Result<v1::SandboxEvent> next();

 private:
  void subscribe();

  const RawClient& client_;
  std::string sandbox_id_;
  std::uint64_t last_seen_;
  ReconnectBackoff backoff_;
  std::optional<EventStream> stream_;
  // Declared after the stream that it cancels, so that it is destroyed first.
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace agbox::sdk
