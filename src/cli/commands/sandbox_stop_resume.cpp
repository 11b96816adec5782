// SPDX-License-Identifier: Apache-2.0
// agbox sandbox stop and agbox sandbox resume: request a change of state and wait until it is
// reached. A stop keeps the files of the sandbox.
#include <agbox/sandbox_wait.h>

#include "base/clock.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/format/elapsed.h"
#include "cli/format/message_json.h"
#include "cli/format/phase_report.h"
#include "cli/interrupt.h"

namespace agbox::cli {

namespace {

struct Stop {
  static constexpr const char* kVerb = "stop";
  static constexpr const char* kDone = "stopped";
  static constexpr const char* kHelp =
      "Stop a sandbox, keep its files, and wait until it is stopped";
  static constexpr auto kGoal = sdk::SandboxGoal::Stopped;
  static constexpr auto kSend = &sdk::RawClient::stop_sandbox;
  using Request = v1::StopSandboxRequest;
};

struct Resume {
  static constexpr const char* kVerb = "resume";
  static constexpr const char* kDone = "resumed";
  static constexpr const char* kHelp = "Start a stopped sandbox and wait until it is ready";
  static constexpr auto kGoal = sdk::SandboxGoal::Resumed;
  static constexpr auto kSend = &sdk::RawClient::resume_sandbox;
  using Request = v1::ResumeSandboxRequest;
};

struct StateFlags {
  std::string sandbox_id;
  bool json = false;
};

int report_failure(Console& console, const std::string& verb, const Interrupt& interrupt,
                   const sdk::Error& error) {
  switch (error.kind) {
    case sdk::ErrorKind::Cancelled:
      console.error("Stopped waiting; the daemon continues the " + verb + ".");
      return interrupt.exit_code();
    case sdk::ErrorKind::SandboxFailed:
      console.error(error.message + "\n  Show sandbox:       agbox sandbox get " +
                    error.sandbox_id() + "\n  Delete sandbox:     agbox sandbox delete " +
                    error.sandbox_id());
      return kRuntimeError;
    default:
      return fail_call(console, "wait for sandbox state", error);
  }
}

template <class Change>
int change_state(Console& console, const StateFlags& flags) {
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  const SystemClock clock;
  const BootTime began = clock.boot_now();
  const std::string& id = flags.sandbox_id;
  typename Change::Request order;
  order.set_sandbox_id(id);
  const auto accepted = ((*client).*Change::kSend)(order, kNoTimeout);
  if (!accepted) {
    return fail_call(console, std::string(Change::kVerb) + " sandbox", accepted.error());
  }
  const Interrupt interrupt;
  console.error("Waiting for sandbox " + id + " to be " + Change::kDone + "...");
  PhaseReport phases(console, clock);
  const auto reached = sdk::wait_for_sandbox(
      *client, id, Change::kGoal,
      {.follow = {.stop = interrupt.token()},
       .on_event = [&phases](const v1::SandboxEvent& event) { phases.show(event); }});
  if (!reached) return report_failure(console, Change::kVerb, interrupt, reached.error());
  console.error(std::string("Sandbox ") + Change::kDone + " in " +
                seconds_text(clock.boot_now() - began) + ".");
  if (!flags.json) return kSuccess;
  v1::GetSandboxRequest request;
  request.set_sandbox_id(id);
  const auto now = client->get_sandbox(request);
  if (!now) return fail_call(console, "get sandbox", now.error());
  console.out(message_json(*now));
  return kSuccess;
}

template <class Change>
void add_change(CommandLine& line, CLI::App& parent) {
  auto [command, flags] = line.add(parent, Change::kVerb, Change::kHelp, change_state<Change>);
  command.add_option("sandbox_id", flags.sandbox_id, "Sandbox ID")->required();
  command.add_flag("--json", flags.json,
                   std::string("Print the sandbox as JSON once it is ") + Change::kDone);
}

}  // namespace

void add_sandbox_resume(CommandLine& line, CLI::App& parent) {
  add_change<Resume>(line, parent);
}

void add_sandbox_stop(CommandLine& line, CLI::App& parent) {
  add_change<Stop>(line, parent);
}

}  // namespace agbox::cli
