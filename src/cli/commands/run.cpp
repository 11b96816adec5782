// SPDX-License-Identifier: Apache-2.0
// agbox run: creates a sandbox, runs a command in it as if it ran here, and deletes the sandbox
// however that ends; the daemon does if this program is killed. The exit codes are those of docker
// run.
#include <agbox/sandbox_hold.h>
#include <agbox/sandbox_wait.h>

#include <array>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/uuid.h"
#include "cli/commands/commands.h"
#include "cli/create_flags.h"
#include "cli/daemon_client.h"
#include "cli/daemon_control.h"
#include "cli/detach_keys.h"
#include "cli/exec_flags.h"
#include "cli/foreground_exec.h"
#include "cli/format/phase_report.h"
#include "cli/format/printable.h"
#include "cli/interrupt.h"

namespace agbox::cli {

namespace {

using namespace std::chrono_literals;

// A daemon that is restarted is back by then.
constexpr auto kDaemonRestart = 10s;
// How long the sandbox outlives a client that was killed. A client that is alive reconnects to a
// restarted daemon within two seconds, and the time of the restart does not count.
constexpr auto kLease = 10s;
constexpr sdk::CallOptions kDeleteTimeout{.timeout = 10s};

struct RunSandboxFlags {
  explicit RunSandboxFlags(CLI::App& command)
      : create(command, CreateFlags::Image::Argument),
        exec(command, ExecFlags::Environment::OfSandbox) {}

  CreateFlags create;
  ExecFlags exec;
  bool detach = false;
  bool keep = false;
  bool remove = false;
  bool timing = false;
  bool no_start = false;
  std::vector<std::string> command;
};

bool is_not_running(const sdk::Error& error) {
  return error.socket && (error.socket->problem == sdk::SocketProblem::Missing ||
                          error.socket->problem == sdk::SocketProblem::NotListening);
}

// How long each step took.
class StepTimes {
 public:
  explicit StepTimes(const Clock& clock) : clock_(clock), last_(clock.boot_now()) {}

  // The step has just ended.
  void end(const char* step) {
    const BootTime now = clock_.boot_now();
    text_ += line(step, now - last_);
    total_ += now - last_;
    last_ = now;
  }
  std::string text() const { return "Timing:" + text_ + line("total", total_); }

 private:
  static std::string line(const char* step, std::chrono::nanoseconds time) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "\n  %-8s %9.3fs", step,
                  std::chrono::duration<double>(time).count());
    return text.data();
  }

  const Clock& clock_;
  BootTime last_;
  std::chrono::nanoseconds total_{0};
  std::string text_;
};

class Run {
 public:
  Run(Console& console, const sdk::RawClient& client, const RunSandboxFlags& flags)
      : console_(console), client_(client), flags_(flags) {}

  int exit_code(v1::CreateSandboxRequest create, v1::CreateExecRequest exec,
                std::optional<InteractiveSession::Options> session);

 private:
  // An exit code if it failed.
  std::optional<int> create_sandbox(const v1::CreateSandboxRequest& request, bool is_own_id);
  std::optional<int> wait_until_ready(const v1::SandboxHandle& created);
  std::optional<int> wait_until_held();
  int run_command(const v1::CreateExecRequest& request,
                  std::optional<InteractiveSession::Options> session);
  void delete_sandbox();
  void report_kept() const;

  Console& console_;
  const sdk::RawClient& client_;
  const RunSandboxFlags& flags_;
  const SystemClock clock_;
  StepTimes times_{clock_};
  // A window that is closed ends the command too: nobody would see how it goes on.
  const Interrupt interrupt_{Interrupt::Hangup::Handled};
  std::string id_;
  v1::SandboxHandle sandbox_;
  bool exists_ = false;     // it is ours to delete
  bool has_lease_ = false;  // the daemon deletes it if this client is gone
  std::optional<sdk::SandboxHold> hold_;
};

std::optional<int> Run::create_sandbox(const v1::CreateSandboxRequest& request, bool is_own_id) {
  const auto create = [&] {
    const WaitReport waiting(console_, clock_, "Waiting for agboxd to accept sandbox " + id_);
    return client_.create_sandbox(request, kNoTimeout);
  };
  auto created = create();
  if (!created && !flags_.no_start && is_not_running(created.error()) &&
      start_daemon_on_first_use(console_)) {
    client_.wait_until_reachable(kDaemonRestart);  // its channel still waits before it tries again
    times_.end("daemon");
    created = create();
  }
  times_.end("create");
  if (created) {
    exists_ = true;
    sandbox_ = std::move(*created->mutable_sandbox());
    has_lease_ = sandbox_.has_lease_ttl();
    if (has_lease_) hold_.emplace(client_, id_);
    return std::nullopt;
  }
  fail_call(console_, "create sandbox", created.error());
  const auto& socket = created.error().socket;
  const bool is_unknown = socket && socket->problem == sdk::SocketProblem::ConnectionLost;
  // Nobody else has an ID that was generated here.
  exists_ = is_unknown && is_own_id;
  if (is_unknown && !is_own_id) {
    console_.error("The sandbox may exist.\n  Show sandbox:       agbox sandbox get " + id_);
  }
  return kOwnFailure;
}

std::optional<int> Run::wait_until_ready(const v1::SandboxHandle& created) {
  PhaseReport phases(console_, clock_, "Waiting for sandbox " + id_ + " to be ready");
  const auto ready = sdk::wait_for_sandbox(
      client_, id_, sdk::SandboxGoal::Ready,
      {.follow = {.stop = interrupt_.token()},
       .on_event = [&phases](const v1::SandboxEvent& event) { phases.show(event); },
       .baseline = created});
  times_.end("ready");
  if (ready) return std::nullopt;
  if (ready.error().kind == sdk::ErrorKind::Cancelled) return interrupt_.exit_code();
  if (ready.error().kind == sdk::ErrorKind::SandboxFailed) {
    console_.error(ready.error().message);
  } else {
    fail_call(console_, "wait for sandbox ready", ready.error());
  }
  return kOwnFailure;
}

// The hold began with the create, so that it is usually confirmed by now.
std::optional<int> Run::wait_until_held() {
  if (!hold_) return std::nullopt;
  const WaitReport waiting(console_, clock_, "Waiting for agboxd to hold sandbox " + id_);
  const auto held = hold_->wait_until_held(interrupt_.token());
  if (held) return std::nullopt;
  if (held.error().kind == sdk::ErrorKind::Cancelled) return interrupt_.exit_code();
  fail_call(console_, "hold sandbox", held.error());
  return kOwnFailure;
}

int Run::run_command(const v1::CreateExecRequest& request,
                     std::optional<InteractiveSession::Options> session) {
  for (const std::string& warning : sandbox_.warnings()) {
    console_.error("Warning: " + printable_line(warning));
  }
  const auto created = client_.create_exec(request, kNoTimeout);
  if (!created) {
    fail_call(console_, "create exec", created.error());
    return kOwnFailure;
  }
  if (flags_.detach) {
    console_.out(id_ + "\n");
    return kSuccess;
  }
  flags_.exec.hint_at_unused_stdin(console_);
  ForegroundExec exec(console_, client_, interrupt_, created->exec_id(),
                      ForegroundExec::OnInterrupt::Cancel, kOwnFailure);
  if (session) exec.attach(*std::move(session));
  const int code = exec.exit_code();
  times_.end("command");
  return code;
}

// The daemon records the request and completes it by itself, so nothing waits for its end.
void Run::delete_sandbox() {
  v1::DeleteSandboxRequest request;
  request.set_sandbox_id(id_);
  auto accepted = client_.delete_sandbox(request, kDeleteTimeout);
  if (!accepted && accepted.error().kind == sdk::ErrorKind::Unreachable) {
    client_.wait_until_reachable(kDaemonRestart);
    accepted = client_.delete_sandbox(request, kDeleteTimeout);
  }
  times_.end("delete");
  if (accepted || accepted.error().kind == sdk::ErrorKind::SandboxNotFound) return;
  fail_call(console_, "delete sandbox", accepted.error());
  console_.error(has_lease_ ? "  agboxd deletes it by itself in about " +
                                  std::to_string(kLease.count()) + "s, or when it runs again."
                            : "  Delete sandbox:     agbox rm " + id_);
}

void Run::report_kept() const {
  console_.error("Sandbox " + id_ + " is kept.\n  Run a command:      agbox exec " + id_ +
                 " COMMAND\n  Delete sandbox:     agbox rm " + id_);
}

int Run::exit_code(v1::CreateSandboxRequest create, v1::CreateExecRequest exec,
                   std::optional<InteractiveSession::Options> session) {
  const bool is_own_id = create.sandbox_id().empty();
  // Chosen here: if the response is lost, the sandbox can still be deleted.
  if (is_own_id) create.set_sandbox_id(random_uuid());
  id_ = create.sandbox_id();
  exec.set_sandbox_id(id_);
  exec.set_exec_id(random_uuid());
  if (!flags_.detach && !flags_.keep) {
    has_lease_ = true;
    create.mutable_create_spec()->mutable_lease_ttl()->set_seconds(kLease.count());
  }
  auto code = create_sandbox(create, is_own_id);
  const bool was_created = !code;
  if (!code) code = wait_until_ready(sandbox_);
  if (!code) code = wait_until_held();
  if (!code) code = run_command(exec, std::move(session));
  const bool is_running = flags_.detach && *code == kSuccess;
  const bool is_kept = was_created && (flags_.keep || is_running);
  if (exists_ && !is_kept) delete_sandbox();
  if (is_kept && !is_running) report_kept();
  if (flags_.timing) console_.error(times_.text());
  return *code;
}

int refuse_run(Console& console, const std::string& message) {
  refuse_usage(console, message);
  return kOwnFailure;
}

int run_in_sandbox(Console& console, const RunSandboxFlags& flags) {
  const bool opens_shell = flags.command.empty() && flags.exec.is_for_shell();
  if (flags.command.empty() && !opens_shell) {
    return refuse_run(console,
                      "run requires a command, such as \"agbox run IMAGE -- ls -l\", or -it for a "
                      "shell");
  }
  const auto create = flags.create.request({});
  if (!create) return refuse_run(console, create.error().message);
  const auto exec =
      flags.exec.request(create->sandbox_id(), opens_shell ? shell_command() : flags.command);
  if (!exec) return refuse_run(console, exec.error());
  std::optional<InteractiveSession::Options> session;
  if (!flags.detach) {
    auto wanted = flags.exec.session();
    if (!wanted) return refuse_run(console, wanted.error());
    session = *std::move(wanted);
    // Who left it could not come back to it: it would be deleted.
    if (session && !flags.keep) session->detach_keys = DetachKeys();
  }
  const auto client = open_client(console);
  if (!client) return kOwnFailure;
  return Run(console, *client, flags).exit_code(*create, *exec, std::move(session));
}

}  // namespace

void add_run(CommandLine& line, CLI::App& parent) {
  auto [command, flags] = line.add(
      parent, "run", "Run a command in a new sandbox, and delete the sandbox", run_in_sandbox);
  CLI::Option* keep = command.add_flag("--keep", flags.keep, "Do not delete the sandbox");
  CLI::Option* remove =
      command.add_flag("--rm", flags.remove, "Delete the sandbox, as by default")->excludes(keep);
  command
      .add_flag("-d,--detach", flags.detach,
                "Start the command, print the sandbox ID and keep the sandbox")
      ->excludes(remove);
  command.add_flag("--no-start", flags.no_start, "Do not start the daemon if it is not running");
  command.add_flag("--timing", flags.timing, "Print to stderr how long each step took");
  line.accepts_trailing_args(command, flags.command);
  line.refuses_with(command, kOwnFailure);
}

}  // namespace agbox::cli
