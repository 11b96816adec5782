// SPDX-License-Identifier: Apache-2.0
// Why something about sandboxes and execs fails. Clients rely on names and codes: a row may be
// added, and never changes.
#pragma once

#include <string>

#include "base/result.h"

namespace agbox {

namespace reason {

inline constexpr Reason kSandboxNotFound{ErrorCode::NotFound, "SANDBOX_NOT_FOUND"};
inline constexpr Reason kSandboxIdAlreadyExists{ErrorCode::AlreadyExists,
                                                "SANDBOX_ID_ALREADY_EXISTS"};
inline constexpr Reason kSandboxNotReady{ErrorCode::FailedPrecondition, "SANDBOX_NOT_READY"};
inline constexpr Reason kSandboxInvalidState{ErrorCode::FailedPrecondition,
                                             "SANDBOX_INVALID_STATE"};
inline constexpr Reason kSandboxEventSequenceExpired{ErrorCode::OutOfRange,
                                                     "SANDBOX_EVENT_SEQUENCE_EXPIRED"};
// It was created without lease_ttl.
inline constexpr Reason kSandboxHasNoLease{ErrorCode::FailedPrecondition, "SANDBOX_HAS_NO_LEASE"};
// A sandbox has no container of this name, or not yet, or no longer.
inline constexpr Reason kContainerNotFound{ErrorCode::NotFound, "CONTAINER_NOT_FOUND"};
inline constexpr Reason kEventCursorOutOfRange{ErrorCode::OutOfRange, "EVENT_CURSOR_OUT_OF_RANGE"};
inline constexpr Reason kExecNotFound{ErrorCode::NotFound, "EXEC_NOT_FOUND"};
inline constexpr Reason kExecIdAlreadyExists{ErrorCode::AlreadyExists, "EXEC_ID_ALREADY_EXISTS"};
inline constexpr Reason kExecAlreadyTerminal{ErrorCode::FailedPrecondition,
                                             "EXEC_ALREADY_TERMINAL"};
inline constexpr Reason kExecOutputOutOfRange{ErrorCode::OutOfRange, "EXEC_OUTPUT_OUT_OF_RANGE"};
inline constexpr Reason kExecOutputLost{ErrorCode::DataLoss, "EXEC_OUTPUT_LOST"};
inline constexpr Reason kExecOutputBusy{ErrorCode::Unavailable, "EXEC_OUTPUT_BUSY"};
inline constexpr Reason kExecOutputUnavailable{ErrorCode::FailedPrecondition,
                                               "EXEC_OUTPUT_UNAVAILABLE"};
// It was not created with stdin or a terminal.
inline constexpr Reason kExecHasNoInput{ErrorCode::FailedPrecondition, "EXEC_HAS_NO_INPUT"};
inline constexpr Reason kExecHasNoTerminal{ErrorCode::FailedPrecondition, "EXEC_HAS_NO_TERMINAL"};
// It has ended, or the command does not read it any more.
inline constexpr Reason kExecInputClosed{ErrorCode::FailedPrecondition, "EXEC_INPUT_CLOSED"};
// Another client writes now.
inline constexpr Reason kExecInputTaken{ErrorCode::FailedPrecondition, "EXEC_INPUT_TAKEN"};
// Its container runs a program of an older release, which lacks what was requested.
inline constexpr Reason kGuestTooOld{ErrorCode::FailedPrecondition, "GUEST_TOO_OLD"};
inline constexpr Reason kEngineUnavailable{ErrorCode::Unavailable, "ENGINE_UNAVAILABLE"};
inline constexpr Reason kEngineRefused{ErrorCode::FailedPrecondition, "ENGINE_REFUSED"};
// Something that is not ours has the name, or the state of what is ours forbids it.
inline constexpr Reason kEngineConflict{ErrorCode::FailedPrecondition, "ENGINE_CONFLICT"};
// It does not answer about one sandbox, but answers others.
inline constexpr Reason kEngineTimeout{ErrorCode::Unavailable, "ENGINE_TIMEOUT"};
inline constexpr Reason kIsolationUnavailable{ErrorCode::Unavailable, "ISOLATION_UNAVAILABLE"};
// What is mounted into a sandbox is not what was when it was accepted.
inline constexpr Reason kMountChanged{ErrorCode::FailedPrecondition, "MOUNT_CHANGED"};
// The engine opens a container's /etc/passwd and /etc/group when it starts it, and would block.
inline constexpr Reason kAccountFileUnsafe{ErrorCode::FailedPrecondition, "ACCOUNT_FILE_UNSAFE"};
// A port that a sandbox publishes on the host is not free.
inline constexpr Reason kPortInUse{ErrorCode::FailedPrecondition, "PORT_IN_USE"};
// A command that a companion has for the primary, post_start_on_primary, failed.
inline constexpr Reason kHookFailed{ErrorCode::FailedPrecondition, "POST_START_HOOK_FAILED"};
inline constexpr Reason kStoreFailed{ErrorCode::Internal, "STORE_FAILED"};
inline constexpr Reason kShuttingDown{ErrorCode::Unavailable, "SHUTTING_DOWN"};

}  // namespace reason

inline Error shutting_down() {
  return {reason::kShuttingDown, "agboxd is shutting down; call again once it has started"};
}

inline Error sandbox_not_found(const std::string& sandbox_id) {
  return {reason::kSandboxNotFound,
          "sandbox " + sandbox_id + " was not found",
          {{"sandbox_id", sandbox_id}}};
}

inline Error exec_already_terminal(const std::string& exec_id) {
  return {reason::kExecAlreadyTerminal,
          "exec " + exec_id + " is already terminal",
          {{"exec_id", exec_id}}};
}

inline Error exec_not_found(const std::string& exec_id) {
  return {reason::kExecNotFound, "exec " + exec_id + " was not found", {{"exec_id", exec_id}}};
}

}  // namespace agbox
