// SPDX-License-Identifier: Apache-2.0
// agbox exec cancel: kills a command and its child processes, and waits until they are gone.
#include <agbox/exec_run.h>

#include "base/clock.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/format/elapsed.h"
#include "cli/format/exec_text.h"
#include "cli/interrupt.h"
#include "cli/wait_report.h"

namespace agbox::cli {

namespace {

int cancel_exec(Console& console, const std::string& exec_id) {
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  const SystemClock clock;
  const BootTime began = clock.boot_now();
  v1::CancelExecRequest request;
  request.set_exec_id(exec_id);
  const auto accepted = client->cancel_exec(request, kNoTimeout);
  if (!accepted) {
    // It has ended already, which is what the caller wants.
    if (accepted.error().kind == sdk::ErrorKind::ExecAlreadyTerminal) return kSuccess;
    return fail_call(console, "cancel exec", accepted.error());
  }
  const Interrupt interrupt;
  const std::string what = "Waiting for exec " + exec_id + " to be cancelled";
  console.error(what + "...");
  const auto ended = [&] {
    const WaitReport waiting(console, clock, what);
    return sdk::wait_for_exec(*client, exec_id, {.stop = interrupt.token()});
  }();
  if (!ended && ended.error().kind == sdk::ErrorKind::Cancelled) {
    console.error("Stopped waiting; the daemon continues the cancellation.");
    return interrupt.exit_code();
  }
  if (!ended) return fail_call(console, "get exec after cancel", ended.error());
  if (ended->state() == v1::EXEC_STATE_CANCELLED) {
    console.error("Exec cancelled in " + seconds_text(clock.boot_now() - began) + ".");
  } else {
    console.error("Exec " + exec_id +
                  " ended before it was cancelled: " + state_text(ended->state()) + ".");
  }
  return kSuccess;
}

}  // namespace

void add_exec_cancel(CommandLine& line, CLI::App& parent) {
  auto [command, exec_id] = line.add(
      parent, "cancel", "Cancel an exec and wait until its processes are gone", cancel_exec);
  command.add_option("exec_id", exec_id, "Exec ID")->required();
}

}  // namespace agbox::cli
