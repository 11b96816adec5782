// SPDX-License-Identifier: Apache-2.0
#include "cli/agent/session.h"

#include <agbox/deadline.h>
#include <agbox/exec_run.h>
#include <agbox/sandbox_wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/uuid.h"
#include "cli/agent/host_values.h"
#include "cli/confirmation.h"
#include "cli/daemon_client.h"
#include "cli/exec_flags.h"
#include "cli/foreground_exec.h"
#include "cli/format/elapsed.h"
#include "cli/format/printable.h"
#include "cli/interrupt.h"
#include "cli/own_sandbox.h"
#include "cli/wait_report.h"
#include "cli/workspace/capture.h"
#include "cli/workspace/changes.h"
#include "cli/workspace/git.h"
#include "cli/workspace/record.h"

namespace agbox::cli {

namespace {

using namespace std::chrono_literals;

constexpr auto kCleanUpTime = 30s;
constexpr auto kReadyCommandTime = 30s;

class AgentSession {
 public:
  AgentSession(Console& console, const sdk::RawClient& client, AgentPlan plan)
      : console_(console), client_(client), plan_(std::move(plan)) {}

  int exit_code();

 private:
  // Each an exit code if it failed.
  std::optional<int> create();
  std::optional<int> record_workspace();

  int run_in_terminal();
  int report_ready();
  std::string ready_value(const std::string& name, const ReadyValue& value);
  // False if what the agent changed would be lost with the sandbox.
  bool save_changes();
  void report_changes();
  void report_kept() const;
  void clean_up();
  void forget_record();

  bool is_interactive() const { return plan_.agent.mode == AgentMode::Interactive; }

  Console& console_;
  const sdk::RawClient& client_;
  const AgentPlan plan_;
  const SystemClock clock_;
  const BootTime began_ = clock_.boot_now();
  // A window that is closed ends the session: nobody could come back to it.
  const Interrupt interrupt_{Interrupt::Hangup::Handled};
  OwnSandbox sandbox_{
      console_, client_, clock_, interrupt_, {.starts_daemon = plan_.starts_daemon}};
  std::optional<WorkspaceRecord> record_;  // of a copied workspace
  bool is_detached_ = false;
};

// Records of sandboxes that are gone for long.
void remove_old_records(const sdk::RawClient& client) {
  const auto records = WorkspaceRecord::list();
  if (!records) return;  // the new record reports it
  const auto now = std::filesystem::file_time_type::clock::now();
  for (const WorkspaceRecord& record : *records) {
    if (now - record.written_at() < kRecordLifetime) continue;
    v1::GetSandboxRequest request;
    request.set_sandbox_id(record.sandbox_id());
    const auto found = client.get_sandbox(request);
    const bool is_gone = found ? found->sandbox().state() == v1::SANDBOX_STATE_DELETED
                               : found.error().kind == sdk::ErrorKind::SandboxNotFound;
    if (is_gone) record.remove();
  }
}

std::optional<int> AgentSession::create() {
  v1::CreateSandboxRequest request = plan_.request;
  add_workspace(*request.mutable_create_spec(), plan_.workspace);
  console_.error("Waiting for sandbox to be ready...");
  if (const auto code = sandbox_.create(std::move(request))) return code;
  if (const auto code = sandbox_.wait_until_ready()) return code;
  for (const std::string& warning : sandbox_.accepted().warnings()) {
    console_.error("Warning: " + printable_line(warning));
  }
  return std::nullopt;
}

std::optional<int> AgentSession::record_workspace() {
  if (plan_.workspace.mode != WorkspaceMode::Copy) return std::nullopt;
  remove_old_records(client_);
  auto record = WorkspaceRecord::create(sandbox_.id(), plan_.workspace.directory, plan_.agent.name);
  if (!record) {
    console_.failure("record the workspace: " + record.error().message());
    return kRuntimeError;
  }
  record_ = std::move(*record);
  const WaitReport waiting(console_, clock_, "Recording what went into the workspace");
  const auto captured = capture_base(client_, *record_, interrupt_.token());
  if (captured) return std::nullopt;
  if (interrupt_.token().stop_requested()) return interrupt_.exit_code();
  return fail_call(console_, "record the workspace", captured.error());
}

int AgentSession::run_in_terminal() {
  v1::CreateExecRequest request;
  request.set_sandbox_id(sandbox_.id());
  request.set_exec_id(random_uuid());
  const auto& command = plan_.agent.agent_command;
  request.mutable_command()->Assign(command.begin(), command.end());
  request.set_stdin(true);
  set_terminal(*request.mutable_terminal());
  const auto created = client_.create_exec(request, kNoTimeout);
  if (!created) return fail_call(console_, "create exec", created.error());
  ForegroundExec exec(console_, client_, interrupt_, created->exec_id(),
                      ForegroundExec::OnInterrupt::Cancel, kRuntimeError);
  exec.attach({.takes_input = true, .is_terminal = true, .detach_keys = plan_.detach_keys});
  const int code = exec.exit_code();
  // Interrupted, it was asked to end, and ends with its sandbox at the latest.
  is_detached_ = exec.keeps_running() && !interrupt_.token().stop_requested();
  return code;
}

std::string AgentSession::ready_value(const std::string& name, const ReadyValue& value) {
  std::string text;
  if (value.command.empty()) {
    text = json_value(value.file, value.json).value_or("");
  } else {
    std::string errors;
    const auto output = output_of_command(client_, sandbox_.id(), value.command, errors);
    if (!output) {
      console_.error("Warning: " + name + ": " + output.error() +
                     (errors.empty() ? "" : ": " + errors));
    }
    text = output.value_or("");
  }
  while (text.ends_with('\n')) text.pop_back();
  return text.empty() ? text : value.prefix + text;
}

int AgentSession::report_ready() {
  std::string text = plan_.agent.ready_text;
  const auto replace = [&text](const std::string& name, const std::string& value) {
    const std::string placeholder = "{" + name + "}";
    for (std::size_t at = text.find(placeholder); at != std::string::npos;
         at = text.find(placeholder, at + value.size())) {
      text.replace(at, placeholder.size(), value);
    }
  };
  replace("sandbox_id", sandbox_.id());
  for (const auto& [name, value] : plan_.agent.ready_values) {
    if (text.contains("{" + name + "}")) replace(name, ready_value(name, value));
  }
  while (text.ends_with('\n')) text.pop_back();
  std::string lines =
      "Sandbox " + sandbox_.id() + " ready in " + seconds_text(clock_.boot_now() - began_) + ".";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines += "\n  " + text.substr(at, end - at);
    at = end + 1;
  }
  lines += "\n  Open a shell:       agbox exec -it " + sandbox_.id() +
           "\n  Show its output:    agbox logs -f --container primary " + sandbox_.id();
  if (record_) lines += "\n  Show changes:       agbox diff " + sandbox_.id();
  console_.error(lines + "\n  Delete sandbox:     agbox rm " + sandbox_.id());
  console_.out(sandbox_.id() + "\n");
  return kSuccess;
}

bool AgentSession::save_changes() {
  if (!record_) return true;
  const auto fail = [this](const std::string& why) {
    console_.failure("save what the agent changed: " + why);
    return false;
  };
  {
    const WaitReport waiting(console_, clock_, "Saving what the agent changed");
    // Not interruptible: a signal is why it is saved now. A second one ends agbox.
    const auto lock = record_->lock();
    if (!lock) return fail(lock.error().message());
    const auto saved = capture_now(client_, *record_, {});
    if (!saved && saved.error().kind == sdk::ErrorKind::SandboxNotFound) return true;
    if (!saved) return fail(saved.error().message);
  }
  report_changes();
  return true;
}

void AgentSession::report_changes() {
  const auto summary = WorkspaceChanges(*record_, kBaseTree, kSavedTree).summary();
  if (!summary) {
    console_.error("Warning: " + summary.error().message());
    return;
  }
  if (summary->empty()) {
    console_.error("No files changed.");
    if (!plan_.keeps) forget_record();
    return;
  }
  const std::string& id = sandbox_.id();
  console_.error(*summary + "\n  Show changes:       agbox diff " + id +
                 "\n  Apply changes:      agbox apply " + id);
}

void AgentSession::forget_record() {
  if (record_) record_->remove();
  record_.reset();
}

void AgentSession::report_kept() const {
  const std::string& id = sandbox_.id();
  console_.error("Sandbox " + id + " is kept.\n  Open a shell:       agbox exec -it " + id +
                 (record_ ? "\n  Show changes:       agbox diff " + id +
                                "\n  Apply changes:      agbox apply " + id
                          : "") +
                 "\n  Delete sandbox:     agbox rm " + id);
}

void AgentSession::clean_up() {
  const std::string& id = sandbox_.id();
  console_.error("Cleaning up sandbox " + id + "...");
  if (!sandbox_.request_deletion()) return;
  const sdk::Deadline deadline(kCleanUpTime, std::stop_token());
  const auto deleted = sdk::wait_for_sandbox(client_, id, sdk::SandboxGoal::Deleted,
                                             {.follow = {.stop = deadline.token()}});
  if (deleted) {
    console_.error("Sandbox " + id + " cleaned up.");
  } else if (deadline.has_passed()) {
    console_.error("warning: sandbox " + id + " is still being deleted; the daemon continues");
  } else {
    console_.error("warning: " + deleted.error().message);
  }
}

int AgentSession::exit_code() {
  auto code = create();
  if (!code) code = record_workspace();
  if (code) {
    forget_record();
    if (sandbox_.exists()) clean_up();
    return *code;
  }
  if (!is_interactive()) return report_ready();
  console_.error("Sandbox " + sandbox_.id() + " ready in " +
                 seconds_text(clock_.boot_now() - began_) +
                 ".\n  Shell:              " + "agbox exec -it " + sandbox_.id());
  code = run_in_terminal();
  if (is_detached_) {
    report_kept();
    return *code;
  }
  const bool is_saved = save_changes();
  if (is_saved && !plan_.keeps) {
    clean_up();
  } else {
    report_kept();
  }
  return is_saved || *code != kSuccess ? *code : static_cast<int>(kRuntimeError);
}

// An exit code if the session cannot begin.
std::optional<int> prepare(Console& console, AgentPlan& plan) {
  if (plan.agent.mode == AgentMode::Interactive && ::isatty(STDIN_FILENO) == 0) {
    return refuse_usage(console,
                        "stdin is not a TTY; agbox agent requires an interactive terminal");
  }
  if (const std::string unmet = unmet_requirement(plan.agent); !unmet.empty()) {
    return refuse_usage(console, unmet);
  }
  if (plan.workspace.mode != WorkspaceMode::Copy) return std::nullopt;
  if (!has_git()) {
    console.failure(
        "git was not found on PATH, and records what an agent changes in a copy of the workspace: "
        "install git, or choose --workspace mount or --workspace none");
    return kRuntimeError;
  }
  const std::string directory = plan.workspace.directory.string();
  if (!plan.asks_about_git || plan.answers_yes || is_in_git_work_tree(directory)) {
    return std::nullopt;
  }
  console.error(directory +
                " is not a Git repository. It will be copied into the sandbox as your workspace.");
  if (!plan.may_ask) {
    console.failure("--no-input: use --yes to copy it, or choose --workspace none");
    return kRuntimeError;
  }
  if (!is_confirmed(console, "Proceed?")) return kRuntimeError;
  return std::nullopt;
}

}  // namespace

int run_agent(Console& console, AgentPlan plan) {
  if (const auto code = prepare(console, plan)) return *code;
  if (plan.agent.skips_missing_tools) {
    skip_missing_tools(console, plan.agent.name, *plan.request.mutable_create_spec());
  }
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  return AgentSession(console, *client, std::move(plan)).exit_code();
}

std::expected<std::string, std::string> output_of_command(const sdk::RawClient& client,
                                                          const std::string& sandbox_id,
                                                          const std::vector<std::string>& command,
                                                          std::string& error_output) {
  std::string output;
  const auto ended = sdk::run(
      client, sandbox_id, command,
      {.timeout = kReadyCommandTime,
       .sinks = {.on_stdout = [&output](std::string_view bytes) { output += bytes; },
                 .on_stderr = [&error_output](std::string_view bytes) { error_output += bytes; }}});
  if (!ended) return std::unexpected(ended.error().message);
  switch (ended->state()) {
    case v1::EXEC_STATE_FINISHED:
      return output;
    case v1::EXEC_STATE_CANCELLED:
      return std::unexpected("exec cancelled");
    default:
      break;
  }
  const std::string code = std::to_string(ended->exit_code());
  if (ended->error().empty() || ended->error() == "exit code " + code) {
    return std::unexpected("exec finished with exit_code=" + code);
  }
  return std::unexpected("exec failed (exit_code=" + code + "): " + ended->error());
}

}  // namespace agbox::cli
