// SPDX-License-Identifier: Apache-2.0
#include "model/exec/exec_request.h"

#include <algorithm>
#include <string>
#include <utility>

#include "model/exec/exec_user.h"
#include "model/ids.h"
#include "model/sandbox/time_to_live.h"
#include "model/spec/maxima.h"
#include "model/spec/request_checks.h"

namespace agbox {
namespace {

constexpr TerminalSize kDefaultSize{.rows = 24, .columns = 80};

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

Result<> check_timeout(const v1::CreateExecRequest& request) {
  if (!request.has_timeout()) return {};
  AGBOX_TRY_VOID(check_duration("timeout", request.timeout()));
  if (request.timeout().seconds() > 0 || request.timeout().nanos() > 0) return {};
  return invalid_argument("timeout must not be 0; leave it out for no limit");
}

Result<> check_terminal(const v1::CreateExecRequest& request) {
  if (!request.has_terminal()) return {};
  if (request.terminal().has_size()) {
    AGBOX_TRY_VOID(parse_terminal_size("terminal.size", request.terminal().size()));
  }
  const std::string& term = request.terminal().term();
  constexpr std::size_t kMaxTermBytes = 128;
  const auto is_printable = [](char c) { return c > ' ' && c < 0x7F; };
  if (term.size() <= kMaxTermBytes && std::ranges::all_of(term, is_printable)) return {};
  return invalid_argument("terminal.term must be the name of a terminal, for example xterm, not " +
                          quoted_excerpt(term));
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
  AGBOX_TRY_VOID(check_exec_user(request.user()));
  AGBOX_TRY_VOID(check_timeout(request));
  AGBOX_TRY_VOID(check_terminal(request));
  return ExecRequest{.request = std::move(request), .bytes = bytes};
}

std::optional<std::chrono::nanoseconds> timeout_of(const v1::CreateExecRequest& request) {
  const std::chrono::seconds seconds(request.timeout().seconds());
  if (!request.has_timeout() || seconds >= kLongestTtl) return std::nullopt;
  return seconds + std::chrono::nanoseconds(request.timeout().nanos());
}

bool needs_current_guest(const v1::CreateExecRequest& request) {
  return !request.user().empty() || has_input(request);
}

bool has_input(const v1::CreateExecRequest& request) {
  return request.stdin() || request.has_terminal();
}

std::optional<TerminalSize> terminal_of(const v1::CreateExecRequest& request) {
  if (!request.has_terminal()) return std::nullopt;
  return parse_terminal_size("terminal.size", request.terminal().size()).value_or(kDefaultSize);
}

std::string term_of(const v1::CreateExecRequest& request) {
  const std::string& term = request.terminal().term();
  return term.empty() ? "xterm" : term;
}

}  // namespace agbox
