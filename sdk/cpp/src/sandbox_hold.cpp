// SPDX-License-Identifier: Apache-2.0
#include <agbox/reconnect_backoff.h>
#include <agbox/sandbox_hold.h>

#include <functional>
#include <limits>
#include <utility>

namespace agbox::sdk {

SandboxHold::SandboxHold(const RawClient& client, std::string sandbox_id)
    : client_(client),
      sandbox_id_(std::move(sandbox_id)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

Result<void> SandboxHold::wait_until_held(const std::stop_token& stop) const {
  std::unique_lock lock(mutex_);
  if (is_known_.wait(lock, stop, [this] { return first_outcome_.has_value(); })) {
    return *first_outcome_;
  }
  return std::unexpected(
      Error{.kind = ErrorKind::Cancelled,
            .code = StatusCode::Cancelled,
            .message = "waiting for the hold of sandbox " + sandbox_id_ + " was stopped"});
}

void SandboxHold::report(Result<void> outcome) {
  const std::lock_guard lock(mutex_);
  if (first_outcome_) return;
  first_outcome_ = std::move(outcome);
  is_known_.notify_all();
}

void SandboxHold::run(const std::stop_token& stop) {
  v1::HoldSandboxRequest request;
  request.set_sandbox_id(sandbox_id_);
  ReconnectBackoff backoff(client_, "hold of sandbox " + sandbox_id_,
                           {.stop = stop, .attempts = std::numeric_limits<int>::max()});
  while (!stop.stop_requested()) {
    HoldStream stream = client_.hold_sandbox(request);
    const std::stop_callback on_stop(stop, [&stream] { stream.cancel(); });
    auto response = stream.next();
    while (response && *response) {
      report({});
      backoff.reset();
      response = stream.next();
    }
    if (response) {
      return report(std::unexpected(Error{.kind = ErrorKind::SandboxFailed,
                                          .code = StatusCode::FailedPrecondition,
                                          .message = "sandbox " + sandbox_id_ + " was deleted",
                                          .metadata = {{"sandbox_id", sandbox_id_}}}));
    }
    // Refused, or released.
    if (auto waited = backoff.wait_after(response.error()); !waited) {
      return report(std::unexpected(waited.error()));
    }
  }
}

}  // namespace agbox::sdk
