// SPDX-License-Identifier: Apache-2.0
// Listens to the engine's events for as long as it runs, over every loss of the stream. Events are
// hints: the engine keeps few and forgets them when it restarts. So each time that the stream
// begins, the consumer is told that it must look at everything once.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>

#include "base/log.h"
#include "engine/docker/api/engine_client.h"

namespace agbox {

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
