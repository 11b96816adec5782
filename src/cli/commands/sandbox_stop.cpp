// SPDX-License-Identifier: Apache-2.0
// agbox sandbox stop: stops the containers of a sandbox and keeps their files.
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/sandbox_state_command.h"

namespace agbox::cli {

namespace {

constexpr SandboxStateCommand kStop{
    .verb = "stop",
    .description = "Stop a sandbox, keep its files, and wait until it is stopped",
    .done = "stopped",
    .goal = sdk::SandboxGoal::Stopped,
    .send = [](const sdk::RawClient& client, const std::string& sandbox_id) {
      v1::StopSandboxRequest request;
      request.set_sandbox_id(sandbox_id);
      return client.stop_sandbox(request, kNoTimeout);
    }};

}  // namespace

void add_sandbox_stop(CommandLine& line, CLI::App& parent) {
  add_sandbox_state_command(line, parent, kStop);
}

}  // namespace agbox::cli
