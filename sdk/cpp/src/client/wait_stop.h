// SPDX-License-Identifier: Apache-2.0
// The limits of a wait as a stop token for what follows streams.
#pragma once

#include <agbox/client_error.h>
#include <agbox/deadline.h>
#include <agbox/wait_limits.h>

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace agbox::sdk {

inline Error wait_timed_out(const WaitLimits& limits, const std::string& subject) {
  return {.kind = ErrorKind::Timeout,
          .code = StatusCode::DeadlineExceeded,
          .message = "waiting for " + subject + " took longer than " +
                     std::to_string(limits.wait_timeout.count()) + " ms"};
}

class WaitStop {
 public:
  explicit WaitStop(const WaitLimits& limits)
      : limits_(limits),
        deadline_(limits.wait_timeout > std::chrono::milliseconds::zero()
                      ? std::optional<std::chrono::nanoseconds>(limits.wait_timeout)
                      : std::nullopt,
                  limits.stop) {}

  std::stop_token token() const { return deadline_.token(); }

  // Of a wait that ended with this error.
  Error explain(Error error, const std::string& subject) const {
    const bool is_late = error.kind == ErrorKind::Cancelled && deadline_.has_passed();
    return is_late ? wait_timed_out(limits_, subject) : std::move(error);
  }

 private:
  const WaitLimits& limits_;
  Deadline deadline_;
};

}  // namespace agbox::sdk
