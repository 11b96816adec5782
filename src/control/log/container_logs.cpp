// SPDX-License-Identifier: Apache-2.0
#include "control/log/container_logs.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <variant>

#include "async/cancellation.h"
#include "base/check.h"
#include "model/reasons.h"

namespace agbox {
namespace {

// While the engine is unreachable. That it is back skips the wait.
constexpr std::chrono::milliseconds kFirstLogRetry{100};
constexpr std::chrono::milliseconds kLongestLogRetry{10'000};

std::unexpected<Error> cancelled_read() {
  return fail(reason::kCancelled, "cancelled");
}

}  // namespace

asio::awaitable<Result<>> ContainerLogs::read(Request request, Write write) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (readers_.size() >= maxima::kLogReaders) {
    co_return fail(reason::kResourceExhausted,
                   "readers of logs of all containers: at most " +
                       std::to_string(maxima::kLogReaders) +
                       " are possible; wait until some of them end, or follow fewer containers");
  }
  Reader reader{.request = std::move(request),
                .write = std::move(write),
                .begun_at = services_.clock.wall_now(),
                .backoff = Backoff(kFirstLogRetry, kLongestLogRetry)};
  const auto place = readers_.insert(readers_.end(), &reader);
  Result<> outcome = co_await read_to_end(reader);
  readers_.erase(place);
  co_return outcome;
}

asio::awaitable<Result<>> ContainerLogs::read_to_end(Reader& reader) {
  const Request& request = reader.request;
  AGBOX_CO_TRY(sandbox, directory_.get(request.sandbox_id));
  // An event of the sandbox may mean that the container exists now, or no longer.
  std::shared_ptr<EventSubscription> events;
  if (request.query.follow) {
    v1::SubscribeSandboxEventsRequest from_now;
    from_now.set_sandbox_id(request.sandbox_id);
    from_now.set_from_sequence(sandbox.last_event_sequence());
    const auto skip_all = [&events] {
      while (std::holds_alternative<EventSubscription::Item>(events->next())) {
      }
    };
    auto subscribed = directory_.subscribe(from_now, [this, &reader, skip_all] {
      skip_all();
      hint(reader);
    });
    if (!subscribed) co_return std::unexpected(subscribed.error());
    events = std::move(*subscribed);
    skip_all();
  }
  while (!co_await is_cancelled()) {
    const std::uint64_t hints_before = reader.hints;
    auto retry_at = Condition::Deadline::max();
    const auto container = directory_.container(request.sandbox_id, request.container);
    if (!container && reader.was_open) co_return Result<>{};
    if (!container) co_return std::unexpected(container.error());
    if (!container->container_id.empty()) {
      AGBOX_CO_TRY(pass, co_await read_once(reader, *container));
      if (!request.query.follow || pass == Pass::ContainerGone) co_return Result<>{};
      // There may be more: the engine may end a stream before it has sent everything.
      if (pass == Pass::NewOutput) continue;
      if (pass == Pass::EngineLost) {
        retry_at = std::chrono::steady_clock::now() + reader.backoff.next();
      }
    } else if (reader.was_open) {
      co_return Result<>{};  // it is removed
    } else if (!request.query.follow) {
      co_return fail(reason::kContainerNotFound,
                     "the container is still being created; call again when it runs, or follow its "
                     "log, which waits for it",
                     {{"sandbox_id", request.sandbox_id}});
    }
    co_await changed_.wait([&] { return reader.hints != hints_before; }, retry_at);
  }
  co_return cancelled_read();
}

asio::awaitable<Result<ContainerLogs::Pass>> ContainerLogs::read_once(Reader& reader,
                                                                      ContainerId container) {
  LogQuery& query = reader.request.query;
  auto opened = co_await services_.engine.open_log(std::move(container), query);
  if (!opened) co_return after_failure(reader, opened.error());
  const std::unique_ptr<ContainerLog> log = std::move(*opened);
  if (!std::exchange(reader.was_open, true) && query.follow) {
    LogPiece confirmation;
    const bool begins_now = query.tail && *query.tail == 0 && !query.after;
    if (begins_now) confirmation.end.time = reader.begun_at;
    if (query.after) confirmation.end = *query.after;
    if (!co_await reader.write(std::move(confirmation))) co_return cancelled_read();
  }
  Pass pass = Pass::Silent;
  while (true) {
    auto piece = co_await log->read();
    if (!piece) co_return after_failure(reader, piece.error());
    if (!*piece) break;
    pass = Pass::NewOutput;
    reader.backoff.reset();
    query.after = (*piece)->end;
    if (!co_await reader.write(std::move(**piece))) co_return cancelled_read();
  }
  if (!query.after && query.tail) {
    query.since = std::max(query.since.value_or(reader.begun_at), reader.begun_at);
    query.tail.reset();
  }
  co_return pass;
}

Result<ContainerLogs::Pass> ContainerLogs::after_failure(const Reader& reader,
                                                         const EngineError& error) {
  const bool goes_on = reader.request.query.follow && reader.was_open;
  if (error.kind() == EngineErrorKind::NotFound && goes_on) return Pass::ContainerGone;
  if (error.kind() == EngineErrorKind::NotFound) {
    return fail(reason::kContainerNotFound, error.message(),
                {{"sandbox_id", reader.request.sandbox_id}});
  }
  if (error.is_open() && goes_on) return Pass::EngineLost;
  return std::unexpected<Error>(error);
}

void ContainerLogs::hint(Reader& reader) {
  ++reader.hints;
  changed_.notify();
}

void ContainerLogs::container_changed(const std::string& sandbox_id) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  for (Reader* reader : readers_) {
    if (reader->request.sandbox_id == sandbox_id) hint(*reader);
  }
}

void ContainerLogs::engine_is_back() {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  for (Reader* reader : readers_) hint(*reader);
}

}  // namespace agbox
