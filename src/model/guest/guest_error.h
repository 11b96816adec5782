// SPDX-License-Identifier: Apache-2.0
// How something that is asked of a guest can fail. A GuestError is an Error that also says what
// kind of failure it is, so that callers can tell "try again" from "look at the container" without
// reading texts.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include "base/result.h"
#include "model/reasons.h"

namespace agbox {

enum class GuestErrorKind {
  Unavailable,   // the host cannot listen for it now, or its directory cannot be reached. Retry
  MayHaveEnded,  // its container may have ended: inspect it
  Silent,        // it is not there, or does not answer
  Refused,       // a definite no
  Cancelled,     // the caller gave up
};

class [[nodiscard]] GuestError : public Error {
 public:
  GuestError(GuestErrorKind kind, std::string message)
      : Error(reason_of(kind), std::move(message)), kind_(kind) {}

  GuestErrorKind kind() const { return kind_; }

 private:
  static const Reason& reason_of(GuestErrorKind kind) {
    if (kind == GuestErrorKind::Cancelled) return reason::kCancelled;
    if (kind == GuestErrorKind::Unavailable) return reason::kHostNotReady;
    return reason::kSandboxNotReady;
  }

  GuestErrorKind kind_;
};

template <class T = void>
using GuestResult = std::expected<T, GuestError>;

inline std::unexpected<GuestError> guest_fail(GuestErrorKind kind, std::string message) {
  return std::unexpected(GuestError(kind, std::move(message)));
}

}  // namespace agbox
