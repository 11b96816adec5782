// SPDX-License-Identifier: Apache-2.0
// agbox exec get: prints one exec, one field per line.
#include <agbox/exec_run.h>

#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/format/elapsed.h"
#include "cli/format/exec_text.h"
#include "cli/format/message_json.h"
#include "cli/format/printable.h"

namespace agbox::cli {

namespace {

struct ExecGetFlags {
  std::string exec_id;
  bool json = false;
};

std::string text_of(const v1::ExecStatus& exec) {
  std::string out;
  const auto add = [&out](const std::string& name, const std::string& value) {
    out += name + "=" + printable_line(value) + "\n";
  };
  add("exec_id", exec.exec_id());
  add("sandbox_id", exec.sandbox_id());
  add("state", state_text(exec.state()));
  add("command", command_text(exec));
  if (!exec.cwd().empty()) add("cwd", exec.cwd());
  if (!exec.user().empty()) add("user", exec.user());
  if (exec.has_timeout()) add("timeout", duration_text(exec.timeout()));
  if (sdk::is_terminal(exec.state())) add("exit_code", std::to_string(exec.exit_code()));
  if (!exec.error_code().empty()) add("error_code", exec.error_code());
  if (!exec.error().empty()) add("error", exec.error());
  if (exec.has_started_at()) add("started_at", second_text(exec.started_at()));
  if (exec.has_ended_at()) add("ended_at", second_text(exec.ended_at()));
  if (exec.output_truncated()) add("output_truncated", "true");
  if (!exec.stdout_log_path().empty()) add("stdout_log_path", exec.stdout_log_path());
  if (!exec.stderr_log_path().empty()) add("stderr_log_path", exec.stderr_log_path());
  return out;
}

int get_exec(Console& console, const ExecGetFlags& flags) {
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  v1::GetExecRequest request;
  request.set_exec_id(flags.exec_id);
  const auto response = client->get_exec(request);
  if (!response) return fail_call(console, "get exec", response.error());
  console.out(flags.json ? message_json(*response) : text_of(response->exec()));
  return kSuccess;
}

}  // namespace

void add_exec_get(CommandLine& line, CLI::App& parent) {
  auto [command, flags] = line.add(parent, "get", "Show an exec", get_exec);
  command.add_option("exec_id", flags.exec_id, "Exec ID")->required();
  command.add_flag("--json", flags.json, "Print JSON");
}

}  // namespace agbox::cli
