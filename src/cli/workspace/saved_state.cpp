// SPDX-License-Identifier: Apache-2.0
#include "cli/workspace/saved_state.h"

#include <agbox/raw_client.h>

#include <string>

#include "base/clock.h"
#include "cli/command_line.h"
#include "cli/daemon_client.h"
#include "cli/idle_resume.h"
#include "cli/wait_report.h"
#include "cli/workspace/capture.h"

namespace agbox::cli {

namespace {

// What was seen last, although the sandbox may have more by now.
std::optional<int> use_last(Console& console, const WorkspaceRecord& record,
                            const std::string& why) {
  if (record.store().object(kSavedTree).empty()) {
    console.failure("read the workspace of sandbox " + record.sandbox_id() + ": " + why);
    return kRuntimeError;
  }
  console.error("This is what was saved last: " + why);
  return std::nullopt;
}

}  // namespace

std::optional<int> update_saved_tree(Console& console, const WorkspaceRecord& record,
                                     const Interrupt& interrupt) {
  const std::string& id = record.sandbox_id();
  if (record.store().object(kBaseTree).empty()) {
    console.failure("what went into the workspace of sandbox " + id + " was not recorded");
    return kRuntimeError;
  }
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  v1::GetSandboxRequest request;
  request.set_sandbox_id(id);
  const auto found = client->get_sandbox(request);
  const bool is_saved = !record.store().object(kSavedTree).empty();
  const bool is_gone = found ? found->sandbox().state() == v1::SANDBOX_STATE_DELETED ||
                                   found->sandbox().state() == v1::SANDBOX_STATE_DELETING
                             : found.error().kind == sdk::ErrorKind::SandboxNotFound;
  if (is_gone && is_saved) return std::nullopt;
  if (is_gone) return use_last(console, record, "it was deleted before it was saved");
  if (!found) return use_last(console, record, found.error().message);
  const v1::SandboxHandle& sandbox = found->sandbox();
  if (!resume_if_idle(console, *client, sandbox, interrupt)) {
    return interrupt.token().stop_requested() ? interrupt.exit_code()
                                              : static_cast<int>(kRuntimeError);
  }
  const SystemClock clock;
  const WaitReport waiting(console, clock, "Reading the workspace of sandbox " + id);
  const auto captured = capture_now(*client, record, interrupt.token());
  if (captured) return std::nullopt;
  if (interrupt.token().stop_requested()) return interrupt.exit_code();
  if (captured.error().kind == sdk::ErrorKind::SandboxNotReady) {
    return use_last(console, record, captured.error().message + " agbox start " + id);
  }
  return fail_call(console, "read the workspace of sandbox " + id, captured.error());
}

}  // namespace agbox::cli
