// SPDX-License-Identifier: Apache-2.0
#include "status_error.h"

#include <agbox/rpc/error_details.pb.h>

#include <array>
#include <optional>
#include <string_view>

#include "socket_diagnosis.h"

namespace agbox::sdk {

namespace {

constexpr std::string_view kDomain = "agents-sandbox";
constexpr std::string_view kErrorInfoType = "google.rpc.ErrorInfo";

struct KnownReason {
  std::string_view name;
  ErrorKind kind;
};

constexpr std::array kKnownReasons = {
    KnownReason{"SANDBOX_NOT_FOUND", ErrorKind::SandboxNotFound},
    KnownReason{"SANDBOX_CONFLICT", ErrorKind::SandboxConflict},
    KnownReason{"SANDBOX_ID_ALREADY_EXISTS", ErrorKind::SandboxConflict},
    KnownReason{"EXEC_ID_ALREADY_EXISTS", ErrorKind::SandboxConflict},
    KnownReason{"SANDBOX_NOT_READY", ErrorKind::SandboxNotReady},
    KnownReason{"SANDBOX_INVALID_STATE", ErrorKind::SandboxInvalidState},
    KnownReason{"SANDBOX_EVENT_SEQUENCE_EXPIRED", ErrorKind::SandboxSequenceExpired},
    KnownReason{"EXEC_NOT_FOUND", ErrorKind::ExecNotFound},
    KnownReason{"EXEC_ALREADY_TERMINAL", ErrorKind::ExecAlreadyTerminal},
    KnownReason{"EXEC_NOT_RUNNING", ErrorKind::ExecNotRunning},
};

ErrorKind kind_of(std::string_view reason) {
  for (const KnownReason& known : kKnownReasons) {
    if (known.name == reason) return known.kind;
  }
  return ErrorKind::Refused;
}

// The daemon's ErrorInfo; nullopt if the details are absent, malformed, for another status, or from
// another domain.
std::optional<rpc::ErrorInfo> error_info(const grpc::Status& status) {
  rpc::Status details;
  if (status.error_details().empty() || !details.ParseFromString(status.error_details())) {
    return std::nullopt;
  }
  if (details.code() != static_cast<int>(status.error_code())) return std::nullopt;
  for (const google::protobuf::Any& detail : details.details()) {
    const std::string_view url = detail.type_url();
    if (url.substr(url.rfind('/') + 1) != kErrorInfoType) continue;
    rpc::ErrorInfo info;
    if (info.ParseFromString(detail.value()) && info.domain() == kDomain) return info;
  }
  return std::nullopt;
}

// The messages that the clients in all languages use.
std::string message_for(const Error& error, const std::string& daemon_message) {
  const std::string sandbox = error.sandbox_id();
  const std::string exec = error.exec_id();
  switch (error.kind) {
    case ErrorKind::SandboxNotFound:
      if (!sandbox.empty()) return "Sandbox " + sandbox + " not found.";
      break;
    case ErrorKind::SandboxNotReady:
      // A daemon that reports the state explains more.
      if (daemon_message == "sandbox " + sandbox + " is not ready") {
        return "Sandbox " + sandbox + " is not ready.";
      }
      break;
    case ErrorKind::ExecNotFound:
      if (!exec.empty()) return "Exec " + exec + " not found.";
      break;
    case ErrorKind::ExecAlreadyTerminal:
      if (!exec.empty()) return "Exec " + exec + " is already terminal.";
      break;
    case ErrorKind::NoSocketPath:
    case ErrorKind::Unreachable:
    case ErrorKind::Timeout:
    case ErrorKind::Cancelled:
    case ErrorKind::SandboxConflict:
    case ErrorKind::SandboxInvalidState:
    case ErrorKind::SandboxSequenceExpired:
    case ErrorKind::SandboxFailed:
    case ErrorKind::ExecNotRunning:
    case ErrorKind::Refused:
    case ErrorKind::LocalFile:
      break;
  }
  return daemon_message;
}

std::string timeout_message(const std::filesystem::path& socket,
                            std::chrono::milliseconds timeout) {
  return "agboxd at " + socket.string() + " did not respond within " +
         std::to_string(timeout.count()) + " ms";
}

}  // namespace

Error error_from_status(const grpc::Status& status, const std::filesystem::path& socket,
                        std::chrono::milliseconds timeout) {
  Error error{.code = static_cast<StatusCode>(status.error_code())};
  if (auto info = error_info(status)) {
    error.reason = info->reason();
    error.metadata = {info->metadata().begin(), info->metadata().end()};
    error.kind = kind_of(error.reason);
    error.message = message_for(error, status.error_message());
    return error;
  }
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return unreachable_error(socket, status.error_message());
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      error.kind = ErrorKind::Timeout;
      error.message = timeout_message(socket, timeout);
      return error;
    case grpc::StatusCode::CANCELLED:
      error.kind = ErrorKind::Cancelled;
      error.message = "the call was cancelled";
      return error;
    default:
      error.message = status.error_message();
      if (error.message.empty()) {
        error.message = "agboxd rejected the call with code " + std::to_string(status.error_code());
      }
      return error;
  }
}

}  // namespace agbox::sdk
