// SPDX-License-Identifier: Apache-2.0
#include "cli/sandbox_move.h"

#include <memory>

#include "base/clock.h"
#include "cli/daemon_client.h"
#include "cli/elapsed.h"
#include "cli/interrupt.h"
#include "cli/message_json.h"

namespace agbox::cli {

namespace {

struct MoveFlags {
  std::string sandbox_id;
  bool json = false;
};

int explain(Console& console, const SandboxMove& move, const Interrupt& interrupt,
            const sdk::Error& error) {
  switch (error.kind) {
    case sdk::ErrorKind::Cancelled:
      // The daemon goes on with what it accepted, whatever becomes of us.
      console.error(std::string("Stopped waiting; the ") + move.verb + " goes on without us.");
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

int run_move(Console& console, const SandboxMove& move, const MoveFlags& flags) {
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  const SystemClock clock;
  const BootTime began = clock.boot_now();
  const std::string& id = flags.sandbox_id;
  const auto accepted = move.ask(*client, id);
  if (!accepted) return fail_call(console, std::string(move.verb) + " sandbox", accepted.error());
  const Interrupt interrupt;
  console.error("Waiting for sandbox " + id + " to be " + move.done + "...");
  const auto there = sdk::wait_for_sandbox(*client, id, move.goal,
                                           {.follow = {.stop = interrupt.token()}, .on_event = {}});
  if (!there) return explain(console, move, interrupt, there.error());
  console.error(std::string("Sandbox ") + move.done + " in " +
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

void add_sandbox_move(CommandLine& line, CLI::App& parent, const SandboxMove& move) {
  CLI::App& command = *parent.add_subcommand(move.verb, move.description);
  // Shared by the parser, which sets them, and the action, which reads them later.
  auto flags = std::make_shared<MoveFlags>();
  command.add_option("sandbox_id", flags->sandbox_id, "Which one")->required();
  command.add_flag("--json", flags->json,
                   std::string("Print the sandbox as JSON once it is ") + move.done);
  line.on(command, [flags, &move](Console& console) { return run_move(console, move, *flags); });
}

}  // namespace agbox::cli
