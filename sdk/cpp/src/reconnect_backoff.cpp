// SPDX-License-Identifier: Apache-2.0
#include <agbox/reconnect_backoff.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace agbox::sdk {

namespace {

constexpr std::chrono::milliseconds kMaxPause{1000};

// Streams end in one of these ways when the daemon exits.
bool is_loss(const Error& error) {
  return error.code == StatusCode::Unavailable || error.kind == ErrorKind::Cancelled;
}

void sleep_unless_stopped(const std::stop_token& stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace

ReconnectBackoff::ReconnectBackoff(const RawClient& client, std::string subject,
                                   FollowOptions options)
    : client_(client),
      subject_(std::move(subject)),
      options_(std::move(options)),
      pause_(options_.first_delay) {}

Error ReconnectBackoff::stopped() const {
  return {.kind = ErrorKind::Cancelled,
          .code = StatusCode::Cancelled,
          .message = "waiting for the " + subject_ + " was stopped"};
}

void ReconnectBackoff::reset() {
  failures_in_a_row_ = 0;
  pause_ = options_.first_delay;
}

Result<void> ReconnectBackoff::wait_after(const std::optional<Error>& loss) {
  if (is_stopped()) return std::unexpected(stopped());
  if (loss && !is_loss(*loss)) return std::unexpected(*loss);
  if (++failures_in_a_row_ > options_.attempts) {
    Error error = loss.value_or(Error{.code = StatusCode::Unavailable});
    error.message = subject_ + " closed unexpectedly: could not reconnect in " +
                    std::to_string(options_.attempts) + " attempts" +
                    (loss ? ": " + loss->message : std::string());
    return std::unexpected(std::move(error));
  }
  // Do not busy-loop if the daemon is reachable but keeps ending the stream.
  sleep_unless_stopped(options_.stop, options_.first_delay);
  client_.wait_until_reachable(pause_, options_.stop);
  if (is_stopped()) return std::unexpected(stopped());
  pause_ = std::min(pause_ * 2, kMaxPause);
  return {};
}

}  // namespace agbox::sdk
