// SPDX-License-Identifier: Apache-2.0
#include "cli/format/sandbox_text.h"

#include <map>

#include "base/log.h"

namespace agbox::cli {

namespace {

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
