// SPDX-License-Identifier: Apache-2.0
// How a sandbox's operations end.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include "base/result.h"
#include "model/guest/guest_error.h"
#include "model/sandbox/sandbox_facts.h"
#include "model/sandbox/work.h"

namespace agbox {

// Why an attempt failed. Internal to the daemon: an event reports the message and the operation.
class [[nodiscard]] OperationFailure {
 public:
  OperationFailure(OperationEnd end, std::string message)
      : end_(end), message_(std::move(message)) {}
  // Implicit, because operations consist of calls that return these.
  OperationFailure(const Error& error);       // NOLINT(google-explicit-constructor)
  OperationFailure(const GuestError& error);  // NOLINT(google-explicit-constructor)

  OperationEnd end() const { return end_; }
  const std::string& message() const { return message_; }
  // Of a failure that has its own; otherwise empty, and the operation has one.
  const std::string& code() const { return code_; }

 private:
  OperationEnd end_;
  std::string message_;
  std::string code_{};
};

template <class T = void>
using OperationResult = std::expected<T, OperationFailure>;

inline std::unexpected<OperationFailure> refuse(std::string message) {
  return std::unexpected(OperationFailure(OperationEnd::Refused, std::move(message)));
}

// Failures that are not definite are retried.
inline bool is_definite(const OperationFailure& failure) {
  return failure.end() == OperationEnd::Refused || failure.end() == OperationEnd::Lost;
}

inline OperationEnd end_of(const OperationResult<>& result) {
  return result ? OperationEnd::Done : result.error().end();
}

}  // namespace agbox
