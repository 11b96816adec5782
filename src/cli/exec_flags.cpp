// SPDX-License-Identifier: Apache-2.0
#include "cli/exec_flags.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/result.h"
#include "cli/detach_keys.h"
#include "cli/terminal_mode.h"
#include "model/duration.h"

namespace agbox::cli {

namespace {

constexpr const char* kNoTerminalHere =
    "-it needs a terminal, and stdin is none; use -i to pass a file or a pipe to the command";

// An empty text: no limit.
agbox::Result<> set_timeout(v1::CreateExecRequest& request, const std::string& text) {
  if (text.empty()) return {};
  const auto parsed = parse_duration(text);
  if (!parsed || *parsed <= std::chrono::nanoseconds(0)) {
    return fail(reason::kInvalidArgument,
                "--timeout must be a positive duration such as 30s or 1h30m: " + text);
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*parsed);
  request.mutable_timeout()->set_seconds(seconds.count());
  request.mutable_timeout()->set_nanos(static_cast<std::int32_t>((*parsed - seconds).count()));
  return {};
}

}  // namespace

void set_terminal(v1::Terminal& terminal) {
  const WindowSize size = window_size(::isatty(STDIN_FILENO) == 1 ? STDIN_FILENO : STDOUT_FILENO);
  terminal.mutable_size()->set_rows(size.rows);
  terminal.mutable_size()->set_columns(size.columns);
  const char* const name = std::getenv("TERM");
  if (name != nullptr) terminal.set_term(name);
}

ExecFlags::ExecFlags(CLI::App& command, Environment environment)
    : detach_keys_(kDefaultDetachKeys) {
  if (environment == Environment::OfExec) {
    env_overrides_.emplace(command, "-e,--env-overrides,--env",
                           "Set an environment variable of the command (repeatable)");
  }
  const auto text = [&command](const std::string& flag, std::string& value, const std::string& type,
                               const std::string& description) {
    command.add_option(flag, value, description)->type_name(type)->take_last();
  };
  text("-w,--cwd,--workdir", cwd_, "PATH",
       "Working directory (default /workspace, in a service or companion that of its image)");
  text("-u,--user", user_, "USER",
       "User that runs the command: a name or uid of the container, e.g. root (default agbox, "
       "in a service or companion that of its image)");
  text("--timeout", timeout_, "DURATION",
       "End the command after this time, e.g. 30s or 1h30m, with exit code 124");
  command.add_flag("-i,--interactive", interactive_, "Pass stdin to the command");
  command.add_flag("-t,--tty", tty_, "Run the command in a terminal");
  text("--detach-keys", detach_keys_, "KEYS",
       "Key sequence to detach, with -it (default ctrl-p,ctrl-q)");
}

std::expected<v1::CreateExecRequest, std::string> ExecFlags::request(
    const std::string& sandbox_id, const std::vector<std::string>& command) const {
  v1::CreateExecRequest request;
  request.set_sandbox_id(sandbox_id);
  request.mutable_command()->Assign(command.begin(), command.end());
  if (env_overrides_) {
    const auto env_overrides = env_overrides_->values();
    if (!env_overrides) return std::unexpected(env_overrides.error());
    request.mutable_env_overrides()->insert(env_overrides->begin(), env_overrides->end());
  }
  request.set_cwd(cwd_);
  request.set_user(user_);
  request.set_stdin(interactive_);
  if (tty_) set_terminal(*request.mutable_terminal());
  if (const auto set = set_timeout(request, timeout_); !set) {
    return std::unexpected(set.error().message());
  }
  return request;
}

std::expected<std::optional<InteractiveSession::Options>, std::string> ExecFlags::session() const {
  const auto detach_keys = DetachKeys::parse(detach_keys_);
  if (!detach_keys) return std::unexpected(detach_keys.error().message());
  const bool has_terminal = tty_ && interactive_;
  if (has_terminal && ::isatty(STDIN_FILENO) == 0) return std::unexpected(kNoTerminalHere);
  if (!interactive_ && !tty_) return std::nullopt;
  return InteractiveSession::Options{
      .takes_input = interactive_, .is_terminal = has_terminal, .detach_keys = *detach_keys};
}

void ExecFlags::hint_at_unused_stdin(Console& console) const {
  struct stat found{};
  const bool has_bytes =
      ::fstat(STDIN_FILENO, &found) == 0 && (S_ISFIFO(found.st_mode) || S_ISREG(found.st_mode));
  if (interactive_ || !has_bytes || !console.is_terminal()) return;
  console.error("Hint: stdin is not passed to the command; use -i to pass it.");
}

std::vector<std::string> shell_command() {
  return {"/bin/sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec sh"};
}

}  // namespace agbox::cli
