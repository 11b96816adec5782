// SPDX-License-Identifier: Apache-2.0
#include "cli/sandbox_state_command.h"

#include <memory>

#include "base/clock.h"
#include "cli/daemon_client.h"
#include "cli/format/elapsed.h"
#include "cli/format/message_json.h"
#include "cli/interrupt.h"

namespace agbox::cli {

namespace {

struct StateCommandFlags {
  std::string sandbox_id;
  bool json = false;
};

int report_failure(Console& console, const SandboxStateCommand& spec, const Interrupt& interrupt,
                   const sdk::Error& error) {
  switch (error.kind) {
    case sdk::ErrorKind::Cancelled:
      console.error(std::string("Stopped waiting; the daemon continues the ") + spec.verb + ".");
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

int run_state_command(Console& console, const SandboxStateCommand& spec,
                      const StateCommandFlags& flags) {
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  const SystemClock clock;
  const BootTime began = clock.boot_now();
  const std::string& id = flags.sandbox_id;
  const auto accepted = spec.send(*client, id);
  if (!accepted) return fail_call(console, std::string(spec.verb) + " sandbox", accepted.error());
  const Interrupt interrupt;
  console.error("Waiting for sandbox " + id + " to be " + spec.done + "...");
  const auto reached = sdk::wait_for_sandbox(
      *client, id, spec.goal, {.follow = {.stop = interrupt.token()}, .on_event = {}});
  if (!reached) return report_failure(console, spec, interrupt, reached.error());
  console.error(std::string("Sandbox ") + spec.done + " in " +
                seconds_text(clock.boot_now() - began) + ".");
  if (!flags.json) return kSuccess;
  v1::GetSandboxRequest request;
  request.set_sandbox_id(id);
  const auto now = client->get_sandbox(request);
  if (!now) return fail_call(console, "get sandbox", now.error());
  console.out(message_json(*now));
  return kSuccess;
}

}  // namespace

void add_sandbox_state_command(CommandLine& line, CLI::App& parent,
                               const SandboxStateCommand& spec) {
  CLI::App& command = *parent.add_subcommand(spec.verb, spec.description);
  // Shared by the parser, which sets them, and the action, which reads them later.
  auto flags = std::make_shared<StateCommandFlags>();
  command.add_option("sandbox_id", flags->sandbox_id, "Sandbox ID")->required();
  command.add_flag("--json", flags->json,
                   std::string("Print the sandbox as JSON once it is ") + spec.done);
  line.on(command,
          [flags, &spec](Console& console) { return run_state_command(console, spec, *flags); });
}

}  // namespace agbox::cli
