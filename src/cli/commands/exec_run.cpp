// SPDX-License-Identifier: Apache-2.0
// agbox exec run, alias agbox sandbox exec: runs a command in a sandbox as if it ran here. Streams
// its output unchanged, returns its exit code, and cancels it and its child processes on Ctrl-C.
// With -i it gets the stdin of agbox, with -t a terminal. agbox exec is the same command for the
// fingers of docker's users, with docker's exit codes; it resumes a sandbox that was idle.
#include <utility>

#include "base/uuid.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/exec_flags.h"
#include "cli/foreground_exec.h"
#include "cli/format/message_json.h"
#include "cli/id_lookup.h"
#include "cli/idle_resume.h"
#include "cli/interrupt.h"

namespace agbox::cli {

namespace {

struct ExecRunFlags : ExecFlags {
  explicit ExecRunFlags(CLI::App& command) : ExecFlags(command), self(command) {}

  CLI::App& self;
  std::string sandbox_id;
  std::string container;
  std::string exec_id;
  bool detach = false;
  bool json = false;
  bool no_resume = false;
  std::vector<std::string> command;
};

int start_command(Console& console, const sdk::RawClient& client, const Interrupt& interrupt,
                  const ExecRunFlags& flags, v1::CreateExecRequest request,
                  std::optional<InteractiveSession::Options> session, int own_failure) {
  request.set_container(flags.container);
  // Choose the ID here: if the response is lost, the user can still look up the exec.
  request.set_exec_id(flags.exec_id.empty() ? random_uuid() : flags.exec_id);
  const auto created = client.create_exec(request, kNoTimeout);
  if (!created) {
    fail_call(console, "create exec", created.error());
    const auto& socket = created.error().socket;
    if (socket && socket->problem == sdk::SocketProblem::ConnectionLost) {
      console.error("The command may be running.\n  Show exec:          agbox exec get " +
                    request.exec_id());
    }
    return own_failure;
  }
  if (flags.json || flags.detach) {
    console.out(flags.json ? message_json(*created) : created->exec_id() + "\n");
    return kSuccess;
  }
  flags.hint_at_unused_stdin(console);
  ForegroundExec exec(console, client, interrupt, created->exec_id(),
                      ForegroundExec::OnInterrupt::Cancel, own_failure);
  if (session) exec.attach(*std::move(session));
  return exec.exit_code();
}

// What is needed before it can start; the error is the message of the usage error.
struct Prepared {
  v1::CreateExecRequest request;
  std::optional<InteractiveSession::Options> session;
};
std::expected<Prepared, std::string> prepare(const ExecRunFlags& flags,
                                             const std::vector<std::string>& command) {
  auto request = flags.request(flags.sandbox_id, command);
  if (!request) return std::unexpected(request.error());
  if (flags.detach || flags.json) return Prepared{*std::move(request), std::nullopt};
  auto session = flags.session();
  if (!session) return std::unexpected(session.error());
  return Prepared{*std::move(request), *std::move(session)};
}

int run_command(Console& console, const ExecRunFlags& flags) {
  auto prepared = prepare(flags, flags.command);
  if (!prepared) return refuse_usage(console, prepared.error());
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  const Interrupt interrupt;
  return start_command(console, *client, interrupt, flags, std::move(prepared->request),
                       std::move(prepared->session), kRuntimeError);
}

int run_flat(Console& console, const ExecRunFlags& flags) {
  const bool opens_shell = flags.command.empty() && flags.is_for_shell();
  if (flags.sandbox_id.empty()) {
    return CommandLine::refuse_missing_subcommand(console, flags.self);
  }
  if (flags.command.empty() && !opens_shell) {
    return CommandLine::refuse_unknown_subcommand(console, flags.self, flags.sandbox_id);
  }
  auto prepared = prepare(flags, opens_shell ? shell_command() : flags.command);
  if (!prepared) {
    refuse_usage(console, prepared.error());
    return kOwnFailure;
  }
  const auto client = open_client(console);
  if (!client) return kOwnFailure;
  const auto sandbox = find_sandbox(*client, flags.sandbox_id);
  if (!sandbox) {
    fail_call(console, "create exec", sandbox.error());
    return kOwnFailure;
  }
  const Interrupt interrupt;
  if (!flags.no_resume && !resume_if_idle(console, *client, *sandbox, interrupt)) {
    return interrupt.token().stop_requested() ? interrupt.exit_code()
                                              : static_cast<int>(kOwnFailure);
  }
  prepared->request.set_sandbox_id(sandbox->sandbox_id());
  return start_command(console, *client, interrupt, flags, std::move(prepared->request),
                       std::move(prepared->session), kOwnFailure);
}

constexpr const char* kPurpose =
    "Run a command in a sandbox, stream its output and return its exit code";

void add_flags(CLI::App& command, ExecRunFlags& flags) {
  command
      .add_option("--container", flags.container,
                  "Run it in this service or companion (default: primary)")
      ->type_name("NAME")
      ->take_last();
  command
      .add_option("--exec-id", flags.exec_id,
                  "Exec ID, never reused: 4 to 200 letters, digits, - and _ (default: generated)")
      ->type_name("ID")
      ->take_last();
  CLI::Option* json =
      command.add_flag("--json", flags.json, "Print the response as JSON and do not wait");
  command.add_flag("-d,--detach", flags.detach, "Print the exec ID and do not wait")
      ->excludes(json);
}

void add_run(CommandLine& line, CLI::App& parent, const std::string& name) {
  auto [command, flags] = line.add(parent, name, kPurpose, run_command);
  command.add_option("sandbox_id", flags.sandbox_id, "Sandbox ID")->required();
  add_flags(command, flags);
  line.requires_args_after_dashes(command, flags.command);
}

}  // namespace

void add_exec_run(CommandLine& line, CLI::App& parent) {
  add_run(line, parent, "run");
}

void add_sandbox_exec(CommandLine& line, CLI::App& parent) {
  add_run(line, parent, "exec");
}

CLI::App& add_flat_exec(CommandLine& line, CLI::App& parent) {
  auto [command, flags] =
      line.add(parent, "exec", "Run a command in a sandbox, or manage execs", run_flat);
  command.add_option("sandbox_id", flags.sandbox_id, "Sandbox ID, or its beginning");
  add_flags(command, flags);
  command.add_flag("--no-resume", flags.no_resume,
                   "Do not resume a sandbox that was stopped because it was idle");
  line.accepts_trailing_args(command, flags.command);
  line.refuses_with(command, kOwnFailure);
  return command;
}

}  // namespace agbox::cli
