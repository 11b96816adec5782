// SPDX-License-Identifier: Apache-2.0
// What can go wrong between a program and the daemon, as a value: what a program may act on (kind,
// code, reason, metadata) and one sentence for a person (message).
#pragma once

#include <expected>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace agbox::sdk {

enum class ErrorKind {
  NoSocketPath,  // the environment does not say where the daemon's socket is
  Unreachable,   // nobody answered on the socket; Error::socket says why
  Timeout,
  Cancelled,
  SandboxNotFound,
  SandboxConflict,  // an id that was used before, or a conflicting operation
  SandboxNotReady,
  SandboxInvalidState,
  SandboxSequenceExpired,
  SandboxFailed,  // a wait ended: the sandbox went where the goal does not follow any more
  ExecNotFound,
  ExecAlreadyTerminal,
  ExecNotRunning,
  Refused,  // any other answer of the daemon; code and reason say which
};

// The numbers of gRPC, here so that users of the SDK need no gRPC header.
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
  Missing,           // no daemon runs
  NobodyListens,     // the socket file of a daemon that ended without removing it
  PermissionDenied,  // the socket, or a folder on the way to it, belongs to somebody else
  NotASocket,
  PathTooLong,
  ConnectionLost,  // somebody listens there, but hung up
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
  // The daemon's own name of the failure, for example SANDBOX_NOT_FOUND; empty where it gave none.
  std::string reason = {};
  std::string message = {};
  std::map<std::string, std::string> metadata = {};
  std::optional<UnreachableSocket> socket = {};  // where kind is Unreachable

  // From the metadata; empty where the failure is about no sandbox or no exec.
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
