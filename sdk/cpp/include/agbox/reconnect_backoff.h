// SPDX-License-Identifier: Apache-2.0
// Decides whether and when a follower reconnects after it lost the daemon: long enough for a
// restart, and not after a stop request.
#pragma once

#include <agbox/raw_client.h>

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>

namespace agbox::sdk {

struct FollowOptions {
  // A stop request, from any thread, ends the wait with ErrorKind::Cancelled.
  std::stop_token stop = {};
  // How often in a row to reconnect before failing. The pause doubles from `first_delay` to one
  // second, so 30 attempts take half a minute: longer than a restart.
  int attempts = 30;
  std::chrono::milliseconds first_delay{50};
};

class ReconnectBackoff {
 public:
  // `subject` names what is being followed, for error messages. The client must outlive this.
  ReconnectBackoff(const RawClient& client, std::string subject, FollowOptions options);

  const std::stop_token& stop() const { return options_.stop; }
  bool is_stopped() const { return options_.stop.stop_requested(); }
  Error stopped() const;

  // Call when the daemon responded: starts counting attempts from zero.
  void reset();

  // Call after a stream ended unexpectedly or a call failed: waits for the daemon before the next
  // attempt. Fails if `loss` is not a lost connection, after a stop request, or if no attempts are
  // left.
  Result<void> wait_after(const std::optional<Error>& loss);

  // Makes a call that may be repeated, again after every loss.
  template <class Call>
  std::invoke_result_t<Call> retry(Call call) {
    while (true) {
      auto response = call();
      if (response) return response;
      if (auto waited = wait_after(response.error()); !waited) {
        return std::unexpected(waited.error());
      }
    }
  }

 private:
  const RawClient& client_;
  std::string subject_;
  FollowOptions options_;
  int failures_in_a_row_ = 0;
  std::chrono::milliseconds pause_;
};

}  // namespace agbox::sdk
