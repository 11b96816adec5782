// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/operations/operation.h"

#include "model/reasons.h"

namespace agbox {
namespace {

OperationEnd end_after(const Error& error) {
  if (error.reason() == reason::kEngineUnavailable) return OperationEnd::Retry;
  // The next start of the daemon continues what this one can no longer record.
  if (error.reason() == reason::kShuttingDown) return OperationEnd::Retry;
  if (error.reason() == reason::kCancelled) return OperationEnd::Cancelled;
  return OperationEnd::Refused;
}

OperationEnd end_after(GuestErrorKind kind) {
  switch (kind) {
    case GuestErrorKind::Unavailable:
      return OperationEnd::Retry;
    case GuestErrorKind::Cancelled:
      return OperationEnd::Cancelled;
    case GuestErrorKind::MayHaveEnded:
      return OperationEnd::Lost;
    case GuestErrorKind::Silent:
    case GuestErrorKind::Refused:
      break;
  }
  return OperationEnd::Refused;
}

}  // namespace

OperationFailure::OperationFailure(const Error& error)
    : OperationFailure(end_after(error), error.message()) {
  for (const Reason& own :
       {reason::kMountChanged, reason::kAccountFileUnsafe, reason::kPortInUse}) {
    if (error.reason() == own) code_ = own.name;
  }
}

OperationFailure::OperationFailure(const GuestError& error)
    : OperationFailure(end_after(error.kind()), error.message()) {}

}  // namespace agbox
