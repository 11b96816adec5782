// SPDX-License-Identifier: Apache-2.0
// Listens to the engine's events for as long as it runs, over every loss of the stream. Events are
// hints: the engine keeps few and forgets them when it restarts. So each time that the stream
// begins, the consumer is told that it must look at everything once.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>

#include "base/log.h"
#include "docker/engine_client.h"

namespace agbox {

// Waits between tries: twice as long each time, up to a limit.
class Backoff {
 public:
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds longest)
      : first_(first), longest_(longest), next_(first) {}

  std::chrono::milliseconds next() {
    const std::chrono::milliseconds wait = next_;
    next_ = std::min(next_ * 2, longest_);
    return wait;
  }
  void reset() { next_ = first_; }

 private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds longest_;
  std::chrono::milliseconds next_;
};

struct EventConsumer {
  // The stream has begun, after the start or after a gap: look at everything now.
  std::function<void()> reconcile_due;
  std::function<void(const EngineEvent&)> event;
  // The stream is lost, or could not be begun.
  std::function<void(const EngineError&)> lost{};
};

struct EventWatchOptions {
  EventFilter filter{};
  std::chrono::milliseconds first_wait = std::chrono::milliseconds(100);
  std::chrono::milliseconds longest_wait = std::chrono::seconds(30);
  // How to wait; a timer, where it is empty.
  std::function<boost::asio::awaitable<void>(std::chrono::milliseconds)> pause{};
};

// Ends when it is cancelled. The client outlives it.
boost::asio::awaitable<void> watch_events(EngineClient& client, EventConsumer consumer, Logger log,
                                          EventWatchOptions options);

}  // namespace agbox
