// SPDX-License-Identifier: Apache-2.0
// The error of a client call: kind, code, reason and metadata for programs, message for people.
#pragma once

#include <expected>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace agbox::sdk {

enum class ErrorKind {
  NoSocketPath,  // the environment does not determine the path of the daemon's socket
  Unreachable,   // no connection to the daemon; Error::socket has the reason
  Timeout,
  Cancelled,
  SandboxNotFound,
  SandboxConflict,  // the ID is taken, or another operation is in progress
  SandboxNotReady,
  SandboxInvalidState,
  SandboxSequenceExpired,
  SandboxFailed,  // a wait ended because the sandbox can no longer reach the awaited state
  ExecNotFound,
  ExecAlreadyTerminal,
  ExecNotRunning,
  Refused,    // any other error of the daemon; see code and reason
  LocalFile,  // a file of this machine, or what a sandbox sent for one; see reason
};

// The gRPC status codes, so that users of the SDK need no gRPC header.
enum class StatusCode {
  Ok = 0,
  Cancelled = 1,
  Unknown = 2,
  InvalidArgument = 3,
  DeadlineExceeded = 4,
  NotFound = 5,
  AlreadyExists = 6,
  PermissionDenied = 7,
  ResourceExhausted = 8,
  FailedPrecondition = 9,
  Aborted = 10,
  OutOfRange = 11,
  Unimplemented = 12,
  Internal = 13,
  Unavailable = 14,
  DataLoss = 15,
  Unauthenticated = 16,
};

enum class SocketProblem {
  Missing,           // no socket file: the daemon is not running
  NotListening,      // a socket file without a listening process
  PermissionDenied,  // no access to the socket or one of its parent directories
  NotASocket,
  PathTooLong,
  ConnectionLost,  // connected, but the daemon closed the connection
  Other,
};

struct UnreachableSocket {
  std::filesystem::path path;
  SocketProblem problem = SocketProblem::Other;
  bool exists = false;

  bool operator==(const UnreachableSocket&) const = default;
};

struct [[nodiscard]] Error {
  ErrorKind kind = ErrorKind::Refused;
  StatusCode code = StatusCode::Unknown;
  // The ErrorInfo reason, for example SANDBOX_NOT_FOUND; empty if the daemon sent none.
  std::string reason = {};
  std::string message = {};
  std::map<std::string, std::string> metadata = {};
  std::optional<UnreachableSocket> socket = {};  // if kind is Unreachable

  // From the metadata; empty if the error is not about a sandbox or an exec.
  std::string sandbox_id() const { return metadata_value("sandbox_id"); }
  std::string exec_id() const { return metadata_value("exec_id"); }

 private:
  std::string metadata_value(const std::string& key) const {
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::string() : found->second;
  }
};

template <class T>
using Result = std::expected<T, Error>;

}  // namespace agbox::sdk
