// SPDX-License-Identifier: Apache-2.0
// agbox exec wait: waits until an exec has ended and returns its exit code, as exec run does.
#include <agbox/deadline.h>
#include <agbox/exec_run.h>

#include "base/clock.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/foreground_exec.h"
#include "cli/format/message_json.h"
#include "cli/id_lookup.h"
#include "cli/interrupt.h"
#include "cli/wait_limit.h"
#include "cli/wait_report.h"

namespace agbox::cli {

namespace {

struct ExecWaitFlags {
  explicit ExecWaitFlags(CLI::App& command) : limit(command) {}

  std::string exec_id;
  WaitLimit limit;
  bool json = false;
};

int wait_exec(Console& console, const ExecWaitFlags& flags) {
  const auto limit = flags.limit.value();
  if (!limit) return refuse_usage(console, limit.error());
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  const auto found = find_exec(*client, flags.exec_id);
  if (!found) return fail_call(console, "get exec", found.error());
  const std::string& id = found->exec_id();
  const Interrupt interrupt;
  const sdk::Deadline deadline(*limit, interrupt.token());
  const SystemClock clock;
  const auto ended = [&] {
    const WaitReport waiting(console, clock, "Waiting for exec " + id + " to end");
    return sdk::wait_for_exec(*client, id, {.stop = deadline.token()});
  }();
  if (!ended && deadline.has_passed()) {
    console.failure("exec " + id + " has not ended within the --timeout; it keeps running");
    return kTimedOut;
  }
  if (!ended && ended.error().kind == sdk::ErrorKind::Cancelled) return interrupt.exit_code();
  if (!ended) return fail_call(console, "wait exec events", ended.error());
  if (!flags.json) return exec_exit_code(console, *ended);
  v1::GetExecResponse response;
  *response.mutable_exec() = *ended;
  console.out(message_json(response));
  return exec_exit_code(console, *ended);
}

}  // namespace

void add_exec_wait(CommandLine& line, CLI::App& parent) {
  auto [command, flags] =
      line.add(parent, "wait", "Wait until an exec has ended and return its exit code", wait_exec);
  command.add_option("exec_id", flags.exec_id, "Exec ID, or its beginning")->required();
  command.add_flag("--json", flags.json, "Print the exec as JSON once it has ended");
}

}  // namespace agbox::cli
