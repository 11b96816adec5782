// SPDX-License-Identifier: Apache-2.0
// How long a follower puts up with a daemon that does not answer: long enough for a restart, and
// not after it was told to stop.
#pragma once

#include <agbox/raw_client.h>

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>

namespace agbox::sdk {

struct FollowOptions {
  // A stop ends what waits with ErrorKind::Cancelled, from any thread.
  std::stop_token stop = {};
  // How often in a row a lost daemon is asked again before it is given up. What it gets to come
  // back doubles, from `first_pause` to one second: 30 times are half a minute, longer than a
  // restart.
  int attempts = 30;
  std::chrono::milliseconds first_pause{50};
};

class Patience {
 public:
  // `subject` is what would be given up, for the sentence that then says so. The client must
  // outlive it.
  Patience(const RawClient& client, std::string subject, FollowOptions options);

  const std::stop_token& stop() const { return options_.stop; }
  bool is_stopped() const { return options_.stop.stop_requested(); }
  Error stopped() const;

  // The daemon answered: the next loss is the first one again.
  void renew();

  // After a stream ended that should not have, or a call was lost: waits for the daemon before the
  // next try. The error that came instead where it is no loss, where it was stopped, or where
  // nothing is left to try.
  Result<void> wait_after(const std::optional<Error>& loss);

  // The answer to a call that may be repeated: made again after every loss.
  template <class Call>
  std::invoke_result_t<Call> answer_of(Call call) {
    while (true) {
      auto answer = call();
      if (answer) return answer;
      if (auto waited = wait_after(answer.error()); !waited) {
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
