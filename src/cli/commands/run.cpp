// SPDX-License-Identifier: Apache-2.0
// agbox run: creates a sandbox, runs a command in it as if it ran here, and deletes the sandbox
// however that ends; the daemon does if this program is killed. The exit codes are those of docker
// run.
#include <array>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/uuid.h"
#include "cli/commands/commands.h"
#include "cli/create_flags.h"
#include "cli/daemon_client.h"
#include "cli/detach_keys.h"
#include "cli/exec_flags.h"
#include "cli/foreground_exec.h"
#include "cli/format/printable.h"
#include "cli/interrupt.h"
#include "cli/own_sandbox.h"

namespace agbox::cli {

namespace {

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
  int run_command(v1::CreateExecRequest request,
                  std::optional<InteractiveSession::Options> session);
  void report_kept() const;

  Console& console_;
  const sdk::RawClient& client_;
  const RunSandboxFlags& flags_;
  const SystemClock clock_;
  StepTimes times_{clock_};
  // A window that is closed ends the command too: nobody would see how it goes on.
  const Interrupt interrupt_{Interrupt::Hangup::Handled};
  OwnSandbox sandbox_{console_,
                      client_,
                      clock_,
                      interrupt_,
                      {.starts_daemon = !flags_.no_start,
                       .has_lease = !flags_.detach && !flags_.keep,
                       .failure_code = kOwnFailure,
                       .on_step = [this](const char* step) { times_.end(step); }}};
};

int Run::run_command(v1::CreateExecRequest request,
                     std::optional<InteractiveSession::Options> session) {
  for (const std::string& warning : sandbox_.accepted().warnings()) {
    console_.error("Warning: " + printable_line(warning));
  }
  request.set_sandbox_id(sandbox_.id());
  request.set_exec_id(random_uuid());
  const auto created = client_.create_exec(request, kNoTimeout);
  if (!created) {
    fail_call(console_, "create exec", created.error());
    return kOwnFailure;
  }
  if (flags_.detach) {
    console_.out(sandbox_.id() + "\n");
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

void Run::report_kept() const {
  const std::string& id = sandbox_.id();
  console_.error("Sandbox " + id + " is kept.\n  Run a command:      agbox exec " + id +
                 " COMMAND\n  Delete sandbox:     agbox rm " + id);
}

int Run::exit_code(v1::CreateSandboxRequest create, v1::CreateExecRequest exec,
                   std::optional<InteractiveSession::Options> session) {
  auto code = sandbox_.create(std::move(create));
  const bool was_created = !code;
  if (!code) code = sandbox_.wait_until_ready();
  if (!code) code = run_command(std::move(exec), std::move(session));
  const bool is_running = flags_.detach && *code == kSuccess;
  const bool is_kept = was_created && (flags_.keep || is_running);
  if (sandbox_.exists() && !is_kept) sandbox_.request_deletion();
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
