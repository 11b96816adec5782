// SPDX-License-Identifier: Apache-2.0
// agbox sandbox resume: brings a stopped sandbox back to ready.
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/sandbox_move.h"

namespace agbox::cli {

namespace {

constexpr SandboxMove kResume{
    .verb = "resume",
    .description = "Start a stopped sandbox again and wait until it is ready",
    .done = "resumed",
    .goal = sdk::SandboxGoal::Resumed,
    .ask = [](const sdk::RawClient& client, const std::string& sandbox_id) {
      v1::ResumeSandboxRequest request;
      request.set_sandbox_id(sandbox_id);
      return client.resume_sandbox(request, kNoTimeout);
    }};

}  // namespace

void add_sandbox_resume(CommandLine& line, CLI::App& parent) {
  add_sandbox_move(line, parent, kResume);
}

}  // namespace agbox::cli
