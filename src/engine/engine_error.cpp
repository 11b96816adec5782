// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_error.h"

#include "model/reasons.h"

namespace agbox {
namespace {

Reason reason_of(EngineErrorKind kind) {
  switch (kind) {
    case EngineErrorKind::Unavailable:
    case EngineErrorKind::Unfit:
    case EngineErrorKind::Garbled:
      return reason::kEngineUnavailable;
    case EngineErrorKind::NotFound:
    case EngineErrorKind::Refused:
      return reason::kEngineRefused;
    case EngineErrorKind::PortInUse:
      return reason::kPortInUse;
    case EngineErrorKind::Conflict:
      return reason::kEngineConflict;
    case EngineErrorKind::Unsafe:
      return reason::kAccountFileUnsafe;
    case EngineErrorKind::TimedOut:
      return reason::kEngineTimeout;
    case EngineErrorKind::Cancelled:
      return reason::kCancelled;
  }
  return reason::kInternal;
}

EngineErrorKind kind_after(const Error& error) {
  if (error.reason() == reason::kEngineUnavailable) return EngineErrorKind::Unavailable;
  if (error.reason() == reason::kCancelled) return EngineErrorKind::Cancelled;
  return EngineErrorKind::Refused;
}

}  // namespace

EngineError::EngineError(EngineErrorKind kind, std::string message, int http_status,
                         std::string engine_text)
    : Error(reason_of(kind), std::move(message)),
      kind_(kind),
      http_status_(http_status),
      engine_text_(std::move(engine_text)) {}

EngineError::EngineError(const Error& error) : EngineError(kind_after(error), error.message()) {}

}  // namespace agbox
