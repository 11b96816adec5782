// SPDX-License-Identifier: Apache-2.0
// What a client and everything that it returned share: the connection, and how waits reconnect.
#pragma once

#include <agbox/raw_client.h>
#include <agbox/reconnect_backoff.h>

#include <atomic>
#include <stop_token>
#include <utility>

namespace agbox::sdk {

class ClientCore {
 public:
  ClientCore(RawClient raw, int reconnect_attempts)
      : raw_(std::move(raw)), reconnect_attempts_(reconnect_attempts) {}

  const RawClient& raw() const { return raw_; }
  FollowOptions follow(std::stop_token stop = {}) const {
    return {.stop = std::move(stop), .attempts = reconnect_attempts_};
  }

  // Fails if the daemon was never reached and cannot be now: it may not be running at all, so there
  // is no point in waiting for its restart.
  Result<void> reach() const {
    if (was_reached_) return {};
    const auto response = raw_.ping();
    if (!response) return std::unexpected(response.error());
    was_reached_ = true;
    return {};
  }

 private:
  RawClient raw_;
  int reconnect_attempts_;
  mutable std::atomic<bool> was_reached_ = false;
};

}  // namespace agbox::sdk
