// SPDX-License-Identifier: Apache-2.0
// agbox sandbox wait: waits until a sandbox is ready, stopped or deleted.
#include <agbox/deadline.h>
#include <agbox/sandbox_wait.h>

#include <map>

#include "base/clock.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/format/phase_report.h"
#include "cli/id_lookup.h"
#include "cli/interrupt.h"
#include "cli/wait_limit.h"

namespace agbox::cli {

namespace {

struct SandboxWaitFlags {
  explicit SandboxWaitFlags(CLI::App& command) : limit(command) {}

  std::string sandbox_id;
  std::string goal = "ready";
  WaitLimit limit;
};

int wait_sandbox(Console& console, const SandboxWaitFlags& flags) {
  static const std::map<std::string, sdk::SandboxGoal> kGoals = {
      {"ready", sdk::SandboxGoal::Ready},
      {"stopped", sdk::SandboxGoal::Stopped},
      {"deleted", sdk::SandboxGoal::Deleted}};
  const auto goal = kGoals.find(flags.goal);
  if (goal == kGoals.end()) {
    return refuse_usage(console, "--for must be \"ready\", \"stopped\" or \"deleted\"");
  }
  const auto limit = flags.limit.value();
  if (!limit) return refuse_usage(console, limit.error());
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  const auto found = find_sandbox(*client, flags.sandbox_id);
  if (!found) return fail_call(console, "get sandbox", found.error());
  const std::string& id = found->sandbox_id();
  const Interrupt interrupt;
  const sdk::Deadline deadline(*limit, interrupt.token());
  const SystemClock clock;
  PhaseReport phases(console, clock, "Waiting for sandbox " + id + " to be " + flags.goal);
  const auto reached = sdk::wait_for_sandbox(
      *client, id, goal->second,
      {.follow = {.stop = deadline.token()},
       .on_event = [&phases](const v1::SandboxEvent& event) { phases.show(event); },
       .baseline = *found});
  if (reached) return kSuccess;
  if (deadline.has_passed()) {
    console.failure("sandbox " + id + " is not " + flags.goal + " within the --timeout");
    return kTimedOut;
  }
  if (reached.error().kind == sdk::ErrorKind::Cancelled) return interrupt.exit_code();
  if (reached.error().kind == sdk::ErrorKind::SandboxFailed) {
    return fail(console, reached.error().message, reached.error());
  }
  return fail_call(console, "wait for sandbox state", reached.error());
}

}  // namespace

void add_sandbox_wait(CommandLine& line, CLI::App& parent) {
  auto [command, flags] =
      line.add(parent, "wait", "Wait until a sandbox is ready, stopped or deleted", wait_sandbox);
  command.add_option("sandbox_id", flags.sandbox_id, "Sandbox ID, or its beginning")->required();
  command.add_option("--for", flags.goal, "What to wait for (default ready)")
      ->type_name("ready|stopped|deleted")
      ->take_last();
}

}  // namespace agbox::cli
