// SPDX-License-Identifier: Apache-2.0
// agbox sandbox create: creates a sandbox and waits until it is ready.
#include <agbox/sandbox_wait.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/create_flags.h"
#include "cli/daemon_client.h"
#include "cli/format/elapsed.h"
#include "cli/format/message_json.h"
#include "cli/format/phase_report.h"
#include "cli/format/printable.h"
#include "cli/image_remedy.h"
#include "cli/interrupt.h"

namespace agbox::cli {

namespace {

struct SandboxCreateFlags : CreateFlags {
  using CreateFlags::CreateFlags;

  bool json = false;
  bool quiet = false;
  std::vector<std::string> command;
};

int report_not_ready(Console& console, const std::string& id, const Interrupt& interrupt,
                     const sdk::Error& error) {
  const std::string remove = "agbox sandbox delete " + id;
  switch (error.kind) {
    case sdk::ErrorKind::Cancelled:
      console.error("Stopped waiting; the daemon keeps creating sandbox " + id + ".\n" +
                    "  Show sandbox:       agbox sandbox get " + id +
                    "\n  Delete sandbox:     " + remove);
      return interrupt.exit_code();
    case sdk::ErrorKind::SandboxFailed:
      console.error(error.message + image_remedy(error.message) +
                    "\n  Delete sandbox:     " + remove);
      return kRuntimeError;
    default:
      return fail_call(console, "wait for sandbox ready", error);
  }
}

// What a shadow copy lacks is known only when it was made.
v1::SandboxHandle with_warnings(const sdk::RawClient& client, const v1::SandboxHandle& created) {
  if (std::ranges::none_of(created.builtin_resources(), &v1::BuiltinResource::shadow_copy)) {
    return created;
  }
  v1::GetSandboxRequest request;
  request.set_sandbox_id(created.sandbox_id());
  const auto response = client.get_sandbox(request);
  return response ? response->sandbox() : created;
}

int create_sandbox(Console& console, const SandboxCreateFlags& flags) {
  const auto request = flags.request(flags.command);
  if (!request) {
    console.failure(request.error().message);
    return request.error().code;
  }
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  const SystemClock clock;
  const BootTime began = clock.boot_now();
  const auto created = client->create_sandbox(*request, kNoTimeout);
  if (!created) return fail_call(console, "create sandbox", created.error());
  if (flags.json) {
    console.out(message_json(*created));
    return kSuccess;
  }

  const std::string& id = created->sandbox().sandbox_id();
  const Interrupt interrupt;
  std::optional<PhaseReport> phases;
  // A short command may be done, and its sandbox stopped, before the state is read.
  sdk::WaitOptions waiting{.follow = {.stop = interrupt.token()}, .baseline = created->sandbox()};
  if (!flags.quiet) {
    const std::string what = "Waiting for sandbox " + id + " to be ready";
    console.error(what + "...");
    phases.emplace(console, clock, what);
    waiting.on_event = [&phases](const v1::SandboxEvent& event) { phases->show(event); };
  }
  const auto ready = sdk::wait_for_sandbox(*client, id, sdk::SandboxGoal::Ready, waiting);
  phases.reset();
  if (!ready) return report_not_ready(console, id, interrupt, ready.error());
  const v1::SandboxHandle sandbox = with_warnings(*client, created->sandbox());
  for (const std::string& warning : sandbox.warnings()) {
    console.error("Warning: " + printable_line(warning));
  }
  if (flags.quiet) {
    console.out(printable_line(id) + "\n");
    return kSuccess;
  }
  console.error("Sandbox ready in " + seconds_text(clock.boot_now() - began) +
                ".\n  Open a shell:       agbox exec -it " + id +
                "\n  Run a command:      agbox exec " + id + " COMMAND" +
                "\n  Show sandbox:       agbox sandbox get " + id +
                "\n  Delete sandbox:     agbox sandbox delete " + id);
  return kSuccess;
}

}  // namespace

void add_sandbox_create(CommandLine& line, CLI::App& parent) {
  auto [command, flags] = line.add(
      parent, "create", "Create a sandbox, optionally with a command to run in it", create_sandbox);
  CLI::Option* json =
      command.add_flag("--json", flags.json, "Print the response as JSON and do not wait");
  command.add_flag("-q,--quiet", flags.quiet, "Print only the sandbox ID")->excludes(json);
  line.accepts_args_after_dashes(command, flags.command);
}

}  // namespace agbox::cli
