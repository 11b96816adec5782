// SPDX-License-Identifier: Apache-2.0
// agbox exec run, also known as agbox sandbox exec: a command in a sandbox as if it ran here. Its
// output comes live and byte by byte, its exit code is ours, and Ctrl-C ends it with all that it
// started.
#include <agbox/exec_run.h>

#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <utility>

#include "base/uuid.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/exec_text.h"
#include "cli/interrupt.h"
#include "cli/key_value_flag.h"
#include "cli/message_json.h"

namespace agbox::cli {

namespace {

// A daemon that does not take a cancellation by then is not waited for.
constexpr sdk::CallOptions kCancelTimeout{.timeout = std::chrono::milliseconds(1000)};

struct RunFlags {
  explicit RunFlags(CLI::App& command)
      : env_overrides(command, "--env-overrides",
                      "A variable of the command's environment; may be repeated") {}

  KeyValueFlag env_overrides;
  std::string sandbox_id;
  std::string cwd;
  std::string exec_id;
  bool detach = false;
  bool json = false;
  std::vector<std::string> command;
};

// One run, from the accepted exec to our own exit code.
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
  // Once, from whichever thread sees the reason first.
  void cancel();
  void pass(std::string_view bytes, int (Console::*to)(std::string_view) const, int& problem);
  int explain_loss(const sdk::Error& error) const;
  int code_of(const v1::ExecStatus& exec) const;

  Console& console_;
  const sdk::RawClient& client_;
  const Interrupt& interrupt_;
  std::string exec_id_;
  std::once_flag cancelled_once_;
  int stdout_problem_ = 0;
  int stderr_problem_ = 0;
  std::stop_source give_up_;
  std::stop_callback<std::function<void()>> on_signal_;
};

void Run::signalled() {
  if (console_.is_terminal()) console_.error("\nCancelling; once more leaves without waiting.");
  cancel();
}

void Run::cancel() {
  std::call_once(cancelled_once_, [this] {
    v1::CancelExecRequest request;
    request.set_exec_id(exec_id_);
    const auto accepted = client_.cancel_exec(request, kCancelTimeout);
    // One that ended by itself meanwhile is not cancelled, and goes on to its end here.
    if (accepted || accepted.error().kind == sdk::ErrorKind::ExecAlreadyTerminal) return;
    fail_call(console_, "cancel exec", accepted.error());
    give_up_.request_stop();
  });
}

// A stream that nobody takes any more ends the command, as a closed pipe would here. What it still
// writes is read and dropped, because its end is waited for.
void Run::pass(std::string_view bytes, int (Console::*to)(std::string_view) const, int& problem) {
  if (problem != 0) return;
  problem = (console_.*to)(bytes);
  if (problem != 0) cancel();
}

int Run::exit_code() {
  const sdk::OutputSinks sinks{
      .on_stdout =
          [this](std::string_view bytes) {
            pass(bytes, &Console::pass_to_stdout, stdout_problem_);
          },
      .on_stderr =
          [this](std::string_view bytes) {
            pass(bytes, &Console::pass_to_stderr, stderr_problem_);
          },
  };
  const sdk::FollowOptions follow{.stop = give_up_.get_token()};
  if (auto read = sdk::read_output(client_, exec_id_, sinks, follow); !read) {
    return explain_loss(read.error());
  }
  const auto exec = sdk::wait_for_exec(client_, exec_id_, follow);
  if (!exec) return explain_loss(exec.error());
  if (const std::string lost = truncation_text(*exec); !lost.empty()) console_.error(lost);
  if (stdout_problem_ != 0) {
    console_.error("write to stdout: " + std::generic_category().message(stdout_problem_));
  }
  if (stdout_problem_ != 0 || stderr_problem_ != 0) return kRuntimeError;
  // Not by the daemon's answer to the cancellation, which may come after the end that it brought.
  const bool was_interrupted = interrupt_.token().stop_requested();
  if (was_interrupted && exec->state() == v1::EXEC_STATE_CANCELLED) return interrupt_.exit_code();
  return code_of(*exec);
}

int Run::explain_loss(const sdk::Error& error) const {
  if (error.kind != sdk::ErrorKind::Cancelled) fail_call(console_, "read exec output", error);
  console_.error("Exec " + exec_id_ +
                 " goes on without us.\n  Show exec:          agbox exec get " + exec_id_ +
                 "\n  Cancel exec:        agbox exec cancel " + exec_id_);
  return kRuntimeError;
}

int Run::code_of(const v1::ExecStatus& exec) const {
  if (exec.state() == v1::EXEC_STATE_FINISHED) return kSuccess;
  const bool has_code = exec.state() == v1::EXEC_STATE_FAILED && exec.exit_code() != 0;
  // What the exit code says by itself needs no words.
  if (has_code && exec.error() == "exit code " + std::to_string(exec.exit_code())) {
    return exec.exit_code();
  }
  const std::string why = exec.error().empty() ? "" : ": " + exec.error();
  console_.error("exec " + exec_id_ + " ended as " + state_text(exec.state()) + why);
  return has_code ? exec.exit_code() : kCommandLost;
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
  // An id of ours: where the answer is lost, a person can still ask what became of it.
  request.set_exec_id(flags.exec_id.empty() ? random_uuid() : flags.exec_id);
  const Interrupt interrupt;
  const auto created = client->create_exec(request, kNoTimeout);
  if (!created) {
    const int code = fail_call(console, "create exec", created.error());
    const auto& socket = created.error().socket;
    if (socket && socket->problem == sdk::SocketProblem::ConnectionLost) {
      console.error("It may run all the same.\n  Show exec:          agbox exec get " +
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
  CLI::App& command =
      *parent.add_subcommand(name, "Run a command in a sandbox, with its output and exit code");
  // Shared by the parser, which sets them, and the action, which reads them later.
  auto flags = std::make_shared<RunFlags>(command);
  const auto text = [&command](const std::string& flag, std::string& value, const std::string& type,
                               const std::string& description) {
    command.add_option(flag, value, description)->type_name(type)->take_last();
  };
  command.add_option("sandbox_id", flags->sandbox_id, "Which one")->required();
  text("--cwd", flags->cwd, "PATH", "Where it runs (default /workspace)");
  text("--exec-id", flags->exec_id, "ID", "Its id (default: one is made up)");
  CLI::Option* json = command.add_flag("--json", flags->json,
                                       "Print the daemon's answer as JSON at once, do not wait");
  command.add_flag("-d,--detach", flags->detach, "Print its id at once, do not wait")
      ->excludes(json);
  line.needs_words_after_dashes(command, flags->command);
  line.on(command, [flags](Console& console) { return run_command(console, *flags); });
}

}  // namespace

void add_exec_run(CommandLine& line, CLI::App& parent) {
  add_run(line, parent, "run");
}

void add_sandbox_exec(CommandLine& line, CLI::App& parent) {
  add_run(line, parent, "exec");
}

}  // namespace agbox::cli
