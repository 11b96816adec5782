// SPDX-License-Identifier: Apache-2.0
// agbox sandbox resume: starts a stopped sandbox and waits until it is ready.
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/sandbox_state_command.h"

namespace agbox::cli {

namespace {

constexpr SandboxStateCommand kResume{
    .verb = "resume",
    .description = "Start a stopped sandbox and wait until it is ready",
    .done = "resumed",
    .goal = sdk::SandboxGoal::Resumed,
    .send = [](const sdk::RawClient& client, const std::string& sandbox_id) {
      v1::ResumeSandboxRequest request;
      request.set_sandbox_id(sandbox_id);
      return client.resume_sandbox(request, kNoTimeout);
    }};

}  // namespace

void add_sandbox_resume(CommandLine& line, CLI::App& parent) {
  add_sandbox_state_command(line, parent, kResume);
}

}  // namespace agbox::cli
