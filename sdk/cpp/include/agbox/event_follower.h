// SPDX-License-Identifier: Apache-2.0
// The events of one sandbox in order and each once, also across restarts of the daemon: where the
// stream ends or breaks, it subscribes again behind the last event that it has seen.
//
//   EventFollower events(client, id, handle.last_event_sequence());
//   while (auto event = events.next()) show(*event);
#pragma once

#include <agbox/patience.h>
#include <agbox/raw_client.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace agbox::sdk {

class EventFollower {
 public:
  // Events behind `after`, a sequence of that sandbox; 0 is all of them. The client must outlive
  // the follower.
  EventFollower(const RawClient& client, std::string sandbox_id, std::uint64_t after,
                FollowOptions options = {});

  // Blocks until there is an event. ErrorKind::SandboxNotFound also says that the history was
  // removed, some time after the sandbox was deleted.
  Result<v1::SandboxEvent> next();

 private:
  void subscribe();

  const RawClient& client_;
  std::string sandbox_id_;
  std::uint64_t last_seen_;
  Patience patience_;
  std::optional<EventStream> stream_;
  // Declared behind the stream that it cancels: it goes first.
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace agbox::sdk
