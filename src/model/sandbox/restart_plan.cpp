// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/restart_plan.h"

#include <utility>

#include "base/check.h"

namespace agbox {
namespace {

RestartPlan fail_with(const char* code, std::string message) {
  return {.step = RestartStep::Fail, .failure = {.code = code, .message = std::move(message)}};
}

RestartPlan no_container(const char* why) {
  return fail_with("CONTAINER_NOT_RUNNING", std::string("primary container not running: ") + why +
                                                "; delete the sandbox and create it again");
}

RestartPlan no_network() {
  return fail_with("NETWORK_MISSING",
                   "the sandbox's network was removed; delete the sandbox and create it again");
}

RestartPlan no_guest_directory() {
  return fail_with("GUEST_UNREACHABLE",
                   "the directory through which the daemon reaches the sandbox was removed or "
                   "replaced; delete the sandbox and create it again");
}

constexpr const char* kRemoved = "it was removed";
constexpr const char* kForeign = "what has its id is not ours and was left alone";

RestartPlan plan_ready(const SandboxSeen& seen) {
  if (seen.primary == PrimarySeen::Missing) return no_container(kRemoved);
  if (seen.primary == PrimarySeen::Foreign) return no_container(kForeign);
  if (!seen.has_network) return no_network();
  if (!seen.has_guest_directory) return no_guest_directory();
  switch (seen.primary) {
    case PrimarySeen::Running:
    case PrimarySeen::Paused:
      return {.step = RestartStep::Adopt};
    case PrimarySeen::Exited:
      return {.step = seen.has_finished ? RestartStep::Finish : RestartStep::Restart};
    case PrimarySeen::Created:
    case PrimarySeen::OtherStart:
      return {.step = RestartStep::Restart};
    case PrimarySeen::Missing:
    case PrimarySeen::Foreign:
      break;
  }
  die("a container that was seen in no way");
}

// A resume creates nothing: without these it could only fail. A container that another process
// started is left to the resume: its guest was given nothing to run.
RestartPlan plan_stopped(const SandboxSeen& seen) {
  switch (seen.primary) {
    case PrimarySeen::Missing:
      return no_container(kRemoved);
    case PrimarySeen::Foreign:
      return no_container(kForeign);
    case PrimarySeen::Created:
    case PrimarySeen::Running:
    case PrimarySeen::Paused:
    case PrimarySeen::OtherStart:
    case PrimarySeen::Exited:
      break;
  }
  if (!seen.has_network) return no_network();
  return {.step = RestartStep::Stay};
}

}  // namespace

RestartPlan restart_plan(Lifecycle state, const SandboxSeen& seen) {
  switch (state) {
    case Lifecycle::Ready:
      return plan_ready(seen);
    case Lifecycle::Stopped:
      return plan_stopped(seen);
    case Lifecycle::Creating:  // the operation in progress finds out for itself
    case Lifecycle::Resuming:
    case Lifecycle::Stopping:
    case Lifecycle::Deleting:
    case Lifecycle::Failed:
    case Lifecycle::Deleted:
      break;
  }
  return {.step = RestartStep::Stay};
}

std::string exit_text(const ContainerLoss& loss) {
  if (!loss.exit_code) return loss.how;
  return "exit code " + std::to_string(*loss.exit_code) +
         (loss.is_out_of_memory ? ": out of memory" : "");
}

Failure crash_failure(const ContainerLoss& loss) {
  const std::string again = loss.how +
                            "; it was started again and again for five minutes and never"
                            " ran for 30 s";
  if (loss.is_out_of_memory) {
    return {.code = "CONTAINER_OOM", .message = "primary container OOM killed: " + again};
  }
  return {.code = "CONTAINER_CRASHLOOP", .message = "primary container exited: " + again};
}

}  // namespace agbox
