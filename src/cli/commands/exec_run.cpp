// SPDX-License-Identifier: Apache-2.0
// agbox exec run, alias agbox sandbox exec: runs a command in a sandbox as if it ran here. Streams
// its output unchanged, returns its exit code, and cancels it and its child processes on Ctrl-C.
// With -i it gets the stdin of agbox, with -t a terminal.
#include <agbox/exec_run.h>

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "base/result.h"
#include "base/uuid.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/detach_keys.h"
#include "cli/foreground_exec.h"
#include "cli/format/message_json.h"
#include "cli/interrupt.h"
#include "cli/key_value_flag.h"
#include "cli/terminal_mode.h"
#include "model/duration.h"

namespace agbox::cli {

namespace {

constexpr const char* kNoTerminalHere =
    "-it needs a terminal, and stdin is none; use -i to pass a file or a pipe to the command";

struct RunFlags {
  explicit RunFlags(CLI::App& command)
      : env_overrides(command, "--env-overrides",
                      "Set an environment variable of the command (repeatable)") {}

  KeyValueFlag env_overrides;
  std::string sandbox_id;
  std::string cwd;
  std::string exec_id;
  std::string user;
  std::string timeout;
  std::string detach_keys = kDefaultDetachKeys;
  bool interactive = false;
  bool tty = false;
  bool detach = false;
  bool json = false;
  std::vector<std::string> command;
};

// As the terminal of agbox.
void set_terminal(v1::Terminal& terminal) {
  const WindowSize size = window_size(::isatty(STDIN_FILENO) == 1 ? STDIN_FILENO : STDOUT_FILENO);
  terminal.mutable_size()->set_rows(size.rows);
  terminal.mutable_size()->set_columns(size.columns);
  const char* const name = std::getenv("TERM");
  if (name != nullptr) terminal.set_term(name);
}

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

int run_command(Console& console, const RunFlags& flags) {
  const auto env_overrides = flags.env_overrides.values();
  if (!env_overrides) return refuse_usage(console, env_overrides.error());
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  v1::CreateExecRequest request;
  request.set_sandbox_id(flags.sandbox_id);
  request.mutable_command()->Assign(flags.command.begin(), flags.command.end());
  request.set_cwd(flags.cwd);
  request.mutable_env_overrides()->insert(env_overrides->begin(), env_overrides->end());
  request.set_user(flags.user);
  const auto detach_keys = DetachKeys::parse(flags.detach_keys);
  if (!detach_keys) return refuse_usage(console, detach_keys.error().message());
  const bool stays = !flags.detach && !flags.json;
  if (flags.tty && flags.interactive && stays && ::isatty(STDIN_FILENO) == 0) {
    return refuse_usage(console, kNoTerminalHere);
  }
  request.set_stdin(flags.interactive);
  if (flags.tty) set_terminal(*request.mutable_terminal());
  if (const auto set = set_timeout(request, flags.timeout); !set) {
    return refuse_usage(console, set.error().message());
  }
  // Choose the ID here: if the response is lost, the user can still look up the exec.
  request.set_exec_id(flags.exec_id.empty() ? random_uuid() : flags.exec_id);
  const Interrupt interrupt;
  const auto created = client->create_exec(request, kNoTimeout);
  if (!created) {
    const int code = fail_call(console, "create exec", created.error());
    const auto& socket = created.error().socket;
    if (socket && socket->problem == sdk::SocketProblem::ConnectionLost) {
      console.error("The command may be running.\n  Show exec:          agbox exec get " +
                    request.exec_id());
    }
    return code;
  }
  if (flags.json || flags.detach) {
    console.out(flags.json ? message_json(*created) : created->exec_id() + "\n");
    return kSuccess;
  }
  ForegroundExec exec(console, *client, interrupt, created->exec_id());
  if (flags.interactive || flags.tty) {
    exec.attach({.takes_input = flags.interactive,
                 .is_terminal = flags.tty && flags.interactive,
                 .detach_keys = *detach_keys});
  }
  return exec.exit_code();
}

void add_run(CommandLine& line, CLI::App& parent, const std::string& name) {
  auto [command, flags] = line.add(
      parent, name, "Run a command in a sandbox, stream its output and return its exit code",
      run_command);
  const auto text = [&command](const std::string& flag, std::string& value, const std::string& type,
                               const std::string& description) {
    command.add_option(flag, value, description)->type_name(type)->take_last();
  };
  command.add_option("sandbox_id", flags.sandbox_id, "Sandbox ID")->required();
  text("--cwd", flags.cwd, "PATH", "Working directory (default /workspace)");
  text("--exec-id", flags.exec_id, "ID",
       "Exec ID, never reused: 4 to 200 letters, digits, - and _ (default: generated)");
  text("-u,--user", flags.user, "USER",
       "User that runs the command: a name or uid of the container, e.g. root (default agbox)");
  text("--timeout", flags.timeout, "DURATION",
       "End the command after this time, e.g. 30s or 1h30m, with exit code 124");
  CLI::Option* json =
      command.add_flag("--json", flags.json, "Print the response as JSON and do not wait");
  command.add_flag("-i,--interactive", flags.interactive, "Pass stdin to the command");
  command.add_flag("-t,--tty", flags.tty, "Run the command in a terminal");
  text("--detach-keys", flags.detach_keys, "KEYS",
       "Key sequence to detach, with -it (default ctrl-p,ctrl-q)");
  command.add_flag("-d,--detach", flags.detach, "Print the exec ID and do not wait")
      ->excludes(json);
  line.requires_args_after_dashes(command, flags.command);
}

}  // namespace

void add_exec_run(CommandLine& line, CLI::App& parent) {
  add_run(line, parent, "run");
}

void add_sandbox_exec(CommandLine& line, CLI::App& parent) {
  add_run(line, parent, "exec");
}

}  // namespace agbox::cli
