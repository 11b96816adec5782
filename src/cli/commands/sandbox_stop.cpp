// SPDX-License-Identifier: Apache-2.0
// agbox sandbox stop: ends what runs in a sandbox and keeps the sandbox.
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/sandbox_move.h"

namespace agbox::cli {

namespace {

constexpr SandboxMove kStop{
    .verb = "stop",
    .description = "Stop a sandbox and keep what is in it, and wait until it is stopped",
    .done = "stopped",
    .goal = sdk::SandboxGoal::Stopped,
    .ask = [](const sdk::RawClient& client, const std::string& sandbox_id) {
      v1::StopSandboxRequest request;
      request.set_sandbox_id(sandbox_id);
      return client.stop_sandbox(request, kNoTimeout);
    }};

}  // namespace

void add_sandbox_stop(CommandLine& line, CLI::App& parent) {
  add_sandbox_move(line, parent, kStop);
}

}  // namespace agbox::cli
