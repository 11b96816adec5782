// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/operations/attachments.h"

#include <utility>

#include "async/run_blocking.h"
#include "control/sandbox/operations/step.h"
#include "execlog/exec_logs.h"
#include "guestwire/place.h"

namespace agbox {
namespace {

constexpr const char* kExecLogDirectoryInside = "/var/log/agents-sandbox/";

}  // namespace

asio::awaitable<OperationResult<Attachments>> make_attachments(Services& services,
                                                               SandboxFacts& facts) {
  AGBOX_CO_TRY(link, services.guests.make(facts.sandbox_id, facts.link_root()));
  store::v1::Container& primary = facts.containers[""];
  primary.set_guest_folder_device(link.identity.device);
  primary.set_guest_folder_inode(link.identity.inode);
  auto make_directory = [created_with = facts.created_with, sandbox_id = facts.sandbox_id] {
    return make_exec_log_folder(created_with, sandbox_id);
  };
  AGBOX_CO_TRY(exec_logs,
               co_await step("create.output_directory",
                             run_blocking(services.blocking, std::move(make_directory))));
  co_return Attachments{
      {.source = facts.created_with.guest_program(), .target = guestwire::kProgramInside},
      {.source = link.folder, .target = guestwire::kLinkDirectoryInside},
      {.source = exec_logs, .target = kExecLogDirectoryInside}};
}

}  // namespace agbox
