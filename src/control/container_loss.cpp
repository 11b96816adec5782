// SPDX-License-Identifier: Apache-2.0
#include "control/container_loss.h"

#include <utility>

namespace agbox {

std::string start_mark(const ContainerSeen& seen) {
  if (!seen.started_at) return {};
  return std::to_string(seen.started_at->time_since_epoch().count());
}

std::optional<ContainerLoss> loss_of(const store::v1::Container& kept,
                                     const std::optional<ContainerSeen>& seen) {
  const auto lost = [](std::string how, bool is_out_of_memory = false) {
    return ContainerLoss{.is_out_of_memory = is_out_of_memory, .how = std::move(how)};
  };
  if (!seen) return lost("it was removed");
  if (!seen->is_up()) {
    const std::string code = std::to_string(seen->exit_code);
    if (seen->was_oom_killed) return lost("it ran out of memory and ended with code " + code, true);
    return lost("it exited with code " + code);
  }
  // What was accepted of one start is not what the guest of another one would do.
  if (!kept.engine_started_at().empty() && kept.engine_started_at() != start_mark(*seen)) {
    return lost("it ended and was started again by somebody else");
  }
  return std::nullopt;
}

Failure sandbox_failure(const ContainerLoss& loss) {
  if (loss.is_out_of_memory) {
    return {.code = "CONTAINER_OOM", .message = "primary container OOM killed: " + loss.how};
  }
  return {.code = "CONTAINER_NOT_RUNNING", .message = "primary container not running: " + loss.how};
}

}  // namespace agbox
