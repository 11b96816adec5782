// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <system_error>

namespace agbox {

std::string_view reason_name(Reason reason) {
  switch (reason) {
    case Reason::InvalidArgument:
      return "INVALID_ARGUMENT";
    case Reason::SandboxNotFound:
      return "SANDBOX_NOT_FOUND";
    case Reason::SandboxIdAlreadyExists:
      return "SANDBOX_ID_ALREADY_EXISTS";
    case Reason::SandboxNotReady:
      return "SANDBOX_NOT_READY";
    case Reason::SandboxInvalidState:
      return "SANDBOX_INVALID_STATE";
    case Reason::SandboxEventSequenceExpired:
      return "SANDBOX_EVENT_SEQUENCE_EXPIRED";
    case Reason::ExecNotFound:
      return "EXEC_NOT_FOUND";
    case Reason::ExecIdAlreadyExists:
      return "EXEC_ID_ALREADY_EXISTS";
    case Reason::ExecAlreadyTerminal:
      return "EXEC_ALREADY_TERMINAL";
    case Reason::ExecOutputOutOfRange:
      return "EXEC_OUTPUT_OUT_OF_RANGE";
    case Reason::ExecOutputLost:
      return "EXEC_OUTPUT_LOST";
    case Reason::ExecOutputBusy:
      return "EXEC_OUTPUT_BUSY";
    case Reason::ExecOutputUnavailable:
      return "EXEC_OUTPUT_UNAVAILABLE";
    case Reason::EngineUnavailable:
      return "ENGINE_UNAVAILABLE";
    case Reason::GuestFolderUnavailable:
      return "GUEST_FOLDER_UNAVAILABLE";
    case Reason::ContainerLost:
      return "CONTAINER_LOST";
    case Reason::ResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case Reason::Unimplemented:
      return "UNIMPLEMENTED";
    case Reason::ShuttingDown:
      return "SHUTTING_DOWN";
    case Reason::Cancelled:
      return "CANCELLED";
    case Reason::Internal:
      return "INTERNAL";
  }
  return "INTERNAL";
}

Error errno_error(std::string_view what, int error_number) {
  return {Reason::Internal,
          std::string(what) + ": " + std::generic_category().message(error_number)};
}

Error sandbox_not_found(const std::string& sandbox_id) {
  return {Reason::SandboxNotFound,
          "sandbox " + sandbox_id + " was not found",
          {{"sandbox_id", sandbox_id}}};
}

Error exec_not_found(const std::string& exec_id) {
  return {Reason::ExecNotFound, "exec " + exec_id + " was not found", {{"exec_id", exec_id}}};
}

}  // namespace agbox
