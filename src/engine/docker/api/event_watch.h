// SPDX-License-Identifier: Apache-2.0
// Subscribes to the engine's events and reconnects after every loss. Events are hints: the engine
// keeps few and loses them when it restarts. So the consumer must reconcile everything each time
// the stream begins.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>

#include "base/log.h"
#include "engine/docker/api/engine_client.h"

namespace agbox {

struct EventConsumer {
  // The stream has begun, initially or after a gap: reconcile everything now.
  std::function<void()> reconcile_due;
  std::function<void(const EngineEvent&)> event;
  // The stream was lost, or could not be opened.
  std::function<void(const EngineError&)> lost{};
};

struct EventWatchOptions {
  EventFilter filter{};
  std::chrono::milliseconds first_wait = std::chrono::milliseconds(100);
  std::chrono::milliseconds longest_wait = std::chrono::seconds(30);
  // Replaces the timer, for tests.
  std::function<asio::awaitable<void>(std::chrono::milliseconds)> pause{};
};

// Ends when cancelled. The client must outlive it.
asio::awaitable<void> watch_events(EngineClient& client, EventConsumer consumer, Logger log,
                                   EventWatchOptions options);

}  // namespace agbox
