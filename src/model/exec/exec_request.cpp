// SPDX-License-Identifier: Apache-2.0
#include "model/exec/exec_request.h"

#include <string>
#include <utility>

#include "model/ids.h"
#include "model/spec/maxima.h"
#include "model/spec/request_checks.h"

namespace agbox {
namespace {

// An empty entry is legal: programs do get empty arguments.
Result<> check_command(const v1::CreateExecRequest& request) {
  AGBOX_TRY_VOID(at_most(static_cast<std::size_t>(request.command_size()), maxima::kCommandTokens,
                         "the number of command entries"));
  for (int i = 0; i < request.command_size(); ++i) {
    if (contains_nul(request.command(i))) {
      return invalid_argument("command[" + std::to_string(i) + "]: contains a NUL byte");
    }
  }
  return {};
}

// Empty: the sandbox's working directory.
Result<> check_cwd(const std::string& cwd) {
  if (!cwd.empty() && cwd.front() != '/') {
    return invalid_argument("cwd must be absolute, for example /workspace: " + cwd);
  }
  if (contains_nul(cwd)) return invalid_argument("cwd contains a NUL byte");
  return {};
}

}  // namespace

Result<ExecRequest> parse_exec_request(v1::CreateExecRequest request) {
  if (request.command().empty()) return invalid_argument("command must not be empty");
  if (!request.exec_id().empty()) AGBOX_TRY_VOID(check_id("exec_id", request.exec_id()));
  const std::size_t bytes = request.ByteSizeLong();
  AGBOX_TRY_VOID(at_most(bytes, maxima::kExecBytes, "the size of an exec request"));
  AGBOX_TRY_VOID(check_command(request));
  AGBOX_TRY_VOID(check_cwd(request.cwd()));
  AGBOX_TRY_VOID(check_environment("env_overrides", request.env_overrides()));
  return ExecRequest{.request = std::move(request), .bytes = bytes};
}

}  // namespace agbox
