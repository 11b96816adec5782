// SPDX-License-Identifier: Apache-2.0
// agbox exec run, alias agbox sandbox exec: runs a command in a sandbox as if it ran here. Streams
// its output unchanged, returns its exit code, and cancels it and its child processes on Ctrl-C.
#include <agbox/exec_run.h>

#include <functional>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <utility>

#include "base/uuid.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/format/exec_text.h"
#include "cli/format/message_json.h"
#include "cli/interrupt.h"
#include "cli/key_value_flag.h"

namespace agbox::cli {

namespace {

// A daemon that has not accepted a cancellation by then is not waited for.
constexpr sdk::CallOptions kCancelTimeout{.timeout = std::chrono::milliseconds(1000)};

// More than the longest reason that the daemon reports.
constexpr std::size_t kTailBytes = 4096;

struct RunFlags {
  explicit RunFlags(CLI::App& command)
      : env_overrides(command, "--env-overrides",
                      "Set an environment variable of the command (repeatable)") {}

  KeyValueFlag env_overrides;
  std::string sandbox_id;
  std::string cwd;
  std::string exec_id;
  bool detach = false;
  bool json = false;
  std::vector<std::string> command;
};

// One run, from the accepted exec to the exit code of agbox.
class Run {
 public:
  Run(Console& console, const sdk::RawClient& client, const Interrupt& interrupt,
      std::string exec_id)
      : console_(console),
        client_(client),
        interrupt_(interrupt),
        exec_id_(std::move(exec_id)),
        on_signal_(interrupt.token(), [this] { signalled(); }) {}

  int exit_code();

 private:
  void signalled();
  // Runs once, on the first thread that needs it.
  void cancel();
  void pass(std::string_view bytes, int (Console::*to)(std::string_view) const, int& problem);
  int report_lost(const sdk::Error& error) const;
  int code_of(const v1::ExecStatus& exec) const;

  Console& console_;
  const sdk::RawClient& client_;
  const Interrupt& interrupt_;
  std::string exec_id_;
  std::once_flag cancelled_once_;
  int stdout_problem_ = 0;
  int stderr_problem_ = 0;
  std::string stderr_tail_;
  std::stop_source abort_;
  std::stop_callback<std::function<void()>> on_signal_;
};

void Run::signalled() {
  if (console_.is_terminal()) console_.error("\nCancelling; Ctrl-C again exits without waiting.");
  cancel();
}

void Run::cancel() {
  std::call_once(cancelled_once_, [this] {
    v1::CancelExecRequest request;
    request.set_exec_id(exec_id_);
    const auto accepted = client_.cancel_exec(request, kCancelTimeout);
    // It ended concurrently: read the rest of its output and return its exit code.
    if (accepted || accepted.error().kind == sdk::ErrorKind::ExecAlreadyTerminal) return;
    fail_call(console_, "cancel exec", accepted.error());
    abort_.request_stop();
  });
}

// A closed output cancels the command, as SIGPIPE would locally. The rest of its output is read and
// dropped, because its end is still awaited.
void Run::pass(std::string_view bytes, int (Console::*to)(std::string_view) const, int& problem) {
  if (problem != 0) return;
  problem = (console_.*to)(bytes);
  if (problem != 0) cancel();
}

int Run::exit_code() {
  const sdk::OutputSinks sinks{
      .on_stdout =
          [this](std::string_view bytes) { pass(bytes, &Console::write_stdout, stdout_problem_); },
      .on_stderr =
          [this](std::string_view bytes) {
            pass(bytes, &Console::write_stderr, stderr_problem_);
            stderr_tail_ += bytes;
            if (stderr_tail_.size() > kTailBytes) {
              stderr_tail_.erase(0, stderr_tail_.size() - kTailBytes);
            }
          },
  };
  const sdk::FollowOptions follow{.stop = abort_.get_token()};
  if (auto read = sdk::read_output(client_, exec_id_, sinks, follow); !read) {
    return report_lost(read.error());
  }
  const auto exec = sdk::wait_for_exec(client_, exec_id_, follow);
  if (!exec) return report_lost(exec.error());
  if (const std::string lost = truncation_text(*exec); !lost.empty()) console_.error(lost);
  if (stdout_problem_ != 0) {
    console_.error("write to stdout: " + std::generic_category().message(stdout_problem_));
  }
  if (stdout_problem_ != 0 || stderr_problem_ != 0) return kRuntimeError;
  // Judge by the state: the response to the cancellation may arrive after the exec has ended.
  const bool was_interrupted = interrupt_.token().stop_requested();
  if (was_interrupted && exec->state() == v1::EXEC_STATE_CANCELLED) return interrupt_.exit_code();
  return code_of(*exec);
}

int Run::report_lost(const sdk::Error& error) const {
  if (error.kind != sdk::ErrorKind::Cancelled) fail_call(console_, "read exec output", error);
  console_.error("Exec " + exec_id_ + " keeps running.\n  Show exec:          agbox exec get " +
                 exec_id_ + "\n  Cancel exec:        agbox exec cancel " + exec_id_);
  return kRuntimeError;
}

int Run::code_of(const v1::ExecStatus& exec) const {
  if (exec.state() == v1::EXEC_STATE_FINISHED) return kSuccess;
  const bool has_code = exec.state() == v1::EXEC_STATE_FAILED && exec.exit_code() != 0;
  // No message if it would only repeat the exit code, or the reason why the command could not
  // start, which is the last line of its stderr.
  const bool is_known = exec.error() == "exit code " + std::to_string(exec.exit_code()) ||
                        stderr_tail_.ends_with(exec.error() + "\n");
  if (has_code && is_known) return exec.exit_code();
  const std::string why = exec.error().empty() ? "" : ": " + exec.error();
  console_.error("exec " + exec_id_ + " ended as " + state_text(exec.state()) + why);
  return has_code ? exec.exit_code() : kNoExitCode;
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
  return Run(console, *client, interrupt, created->exec_id()).exit_code();
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
  text("--exec-id", flags.exec_id, "ID", "Exec ID (default: generated)");
  CLI::Option* json =
      command.add_flag("--json", flags.json, "Print the response as JSON and do not wait");
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
