// SPDX-License-Identifier: Apache-2.0
#include "cli/format/sandbox_text.h"

#include <map>

#include "base/log.h"

namespace agbox::cli {

namespace {

std::string role_text(v1::CompanionRole role) {
  switch (role) {
    case v1::COMPANION_ROLE_REQUIRED_SERVICE:
      return "required service";
    case v1::COMPANION_ROLE_OPTIONAL_SERVICE:
      return "optional service";
    case v1::COMPANION_ROLE_COMPANION:
      return "companion";
    default:
      return "role " + std::to_string(role);
  }
}

std::string companion_state_text(v1::CompanionState state) {
  switch (state) {
    case v1::COMPANION_STATE_STARTING:
      return "Starting";
    case v1::COMPANION_STATE_READY:
      return "Ready";
    case v1::COMPANION_STATE_FAILED:
      return "Failed";
    case v1::COMPANION_STATE_STOPPED:
      return "Stopped";
    default:
      return "State " + std::to_string(state);
  }
}

std::map<std::string, std::string> sorted_labels(const v1::SandboxHandle& sandbox) {
  return {sandbox.labels().begin(), sandbox.labels().end()};
}

}  // namespace

std::string state_text(v1::SandboxState state) {
  switch (state) {
    case v1::SANDBOX_STATE_UNSPECIFIED:
      return "Unspecified";
    case v1::SANDBOX_STATE_PENDING:
      return "Pending";
    case v1::SANDBOX_STATE_READY:
      return "Ready";
    case v1::SANDBOX_STATE_FAILED:
      return "Failed";
    case v1::SANDBOX_STATE_STOPPED:
      return "Stopped";
    case v1::SANDBOX_STATE_DELETING:
      return "Deleting";
    case v1::SANDBOX_STATE_DELETED:
      return "Deleted";
    default:
      return "State " + std::to_string(state);
  }
}

std::string error_text(const std::string& code, const std::string& message) {
  return code.empty() || message.empty() ? code + message : code + ": " + message;
}

std::string companion_text(const v1::CompanionStatus& companion) {
  std::string out = companion.name() + " (" + role_text(companion.role()) + ", " +
                    companion.image() + "): " + companion_state_text(companion.state());
  if (!companion.health().empty()) out += ", " + companion.health();
  if (companion.restart_count() > 0) {
    out += ", restart_count=" + std::to_string(companion.restart_count());
  }
  if (!companion.last_exit().empty()) out += ", last_exit=" + companion.last_exit();
  const std::string error = error_text(companion.error_code(), companion.error_message());
  return error.empty() ? out : out + ", " + error;
}

std::string labels_text(const v1::SandboxHandle& sandbox) {
  std::string out;
  for (const auto& [key, value] : sorted_labels(sandbox)) {
    out += (out.empty() ? "" : ",") + key + "=" + value;
  }
  return out;
}

std::string labels_json(const v1::SandboxHandle& sandbox) {
  std::string out;
  for (const auto& [key, value] : sorted_labels(sandbox)) {
    out += (out.empty() ? "" : ",") + json_quote(key) + ":" + json_quote(value);
  }
  return "{" + out + "}";
}

}  // namespace agbox::cli
