// SPDX-License-Identifier: Apache-2.0
#include <agbox/event_follower.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace agbox::sdk {

namespace {

constexpr std::chrono::milliseconds kLongestPause{1000};

// A daemon that ends breaks its streams off in one of these ways; nobody else does.
bool is_loss(const Error& error) {
  return error.code == StatusCode::Unavailable || error.kind == ErrorKind::Cancelled;
}

Error cancelled() {
  return {.kind = ErrorKind::Cancelled,
          .code = StatusCode::Cancelled,
          .message = "waiting for events was stopped"};
}

// False where it was stopped before the time was over.
bool sleep_unless_stopped(const std::stop_token& stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace

EventFollower::EventFollower(const RawClient& client, std::string sandbox_id, std::uint64_t after,
                             FollowOptions options)
    : client_(client),
      sandbox_id_(std::move(sandbox_id)),
      last_seen_(after),
      options_(std::move(options)),
      pause_(options_.first_pause) {}

Result<v1::SandboxEvent> EventFollower::next() {
  while (true) {
    if (options_.stop.stop_requested()) return std::unexpected(cancelled());
    if (!stream_) subscribe();
    auto event = stream_->next();
    if (event && *event) {
      if ((*event)->sequence() <= last_seen_) continue;
      last_seen_ = (*event)->sequence();
      failures_in_a_row_ = 0;
      pause_ = options_.first_pause;
      return std::move(**event);
    }
    on_stop_.reset();
    stream_.reset();
    const std::optional<Error> loss = event ? std::nullopt : std::optional(event.error());
    if (options_.stop.stop_requested()) return std::unexpected(cancelled());
    if (loss && !is_loss(*loss)) return std::unexpected(*loss);
    if (auto paused = pause_before_retry(loss); !paused) return std::unexpected(paused.error());
  }
}

void EventFollower::subscribe() {
  v1::SubscribeSandboxEventsRequest request;
  request.set_sandbox_id(sandbox_id_);
  request.set_from_sequence(last_seen_);
  stream_.emplace(client_.subscribe_sandbox_events(request));
  on_stop_.emplace(options_.stop, [this] { stream_->cancel(); });
}

Result<void> EventFollower::pause_before_retry(const std::optional<Error>& loss) {
  if (++failures_in_a_row_ > options_.attempts) {
    Error error = loss.value_or(Error{.code = StatusCode::Unavailable});
    error.message = "sandbox event stream closed unexpectedly and did not come back in " +
                    std::to_string(options_.attempts) + " attempts" +
                    (loss ? ": " + loss->message : std::string());
    return std::unexpected(std::move(error));
  }
  if (!sleep_unless_stopped(options_.stop, pause_)) return std::unexpected(cancelled());
  pause_ = std::min(pause_ * 2, kLongestPause);
  return {};
}

}  // namespace agbox::sdk
