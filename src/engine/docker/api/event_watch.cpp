// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/event_watch.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include "async/await.h"
#include "async/backoff.h"
#include "async/cancellation.h"
#include "engine/docker/api/line_splitter.h"

namespace agbox {

namespace {

// Until the stream ends for any reason. `begun` is set when it has begun.
asio::awaitable<EngineError> follow(EngineClient& client, const EventConsumer& consumer,
                                    const EventFilter& filter,
                                    std::optional<std::chrono::steady_clock::time_point>& begun) {
  EngineResult<EngineStream> stream = co_await client.open_events(filter);
  if (!stream) co_return std::move(stream.error());
  begun = std::chrono::steady_clock::now();
  consumer.reconcile_due();
  LineSplitter lines;
  while (true) {
    EngineResult<std::string> piece = co_await stream->read_some();
    if (!piece) co_return std::move(piece.error());
    if (piece->empty()) {
      co_return EngineError(EngineErrorKind::Unavailable, "the engine ended its event stream");
    }
    EngineResult<std::vector<std::string>> whole = lines.feed(*piece);
    if (!whole) co_return std::move(whole.error());
    for (const std::string& line : *whole) {
      const EngineResult<EngineEvent> event = read_event(line);
      // After an unreadable line the state is uncertain: reconnect and reconcile.
      if (!event) co_return event.error();
      consumer.event(*event);
    }
  }
}

asio::awaitable<void> pause_with_timer(std::chrono::milliseconds wait) {
  asio::steady_timer timer(co_await asio::this_coro::executor, wait);
  co_await timer.async_wait(kAwait);
}

}  // namespace

asio::awaitable<void> watch_events(EngineClient& client, EventConsumer consumer, Logger log,
                                   EventWatchOptions options) {
  const auto pause = options.pause ? options.pause : pause_with_timer;
  Backoff backoff(options.first_wait, options.longest_wait);
  std::chrono::milliseconds waited{0};
  while (!co_await is_cancelled()) {
    std::optional<std::chrono::steady_clock::time_point> begun;
    const EngineError loss = co_await follow(client, consumer, options.filter, begun);
    if (co_await is_cancelled()) co_return;
    // A stream shorter than the preceding wait does not reset the backoff.
    if (begun && std::chrono::steady_clock::now() - *begun > std::max(waited, options.first_wait)) {
      backoff.reset();
    }
    waited = backoff.next();
    log.warn("container event subscription lost, reconnecting",
             {{"error", loss.message()}, {"backoff", waited.count() * 1'000'000}});
    if (consumer.lost) consumer.lost(loss);
    co_await pause(waited);
  }
}

}  // namespace agbox
