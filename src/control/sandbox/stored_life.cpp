// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/stored_life.h"

namespace agbox {

Operation stored_operation(Lifecycle state, bool cleans_up) {
  switch (state) {
    case Lifecycle::Creating:
      return Operation::Creating;
    case Lifecycle::Resuming:
      return Operation::Resuming;
    case Lifecycle::Stopping:
      return Operation::Stopping;
    case Lifecycle::Deleting:
      return Operation::Deleting;
    case Lifecycle::Failed:
      return cleans_up ? Operation::CleaningUp : Operation::None;
    case Lifecycle::Ready:
    case Lifecycle::Stopped:
    case Lifecycle::Deleted:
      break;
  }
  return Operation::None;
}

Lifecycle life_of(const SandboxRecord& record) {
  switch (record.operation.operation) {
    case Operation::Creating:
      return Lifecycle::Creating;
    case Operation::Resuming:
      return Lifecycle::Resuming;
    case Operation::Stopping:
      return Lifecycle::Stopping;
    case Operation::Deleting:
      return Lifecycle::Deleting;
    case Operation::CleaningUp:
      return Lifecycle::Failed;
    case Operation::None:
      break;
  }
  switch (record.status.state) {
    case v1::SANDBOX_STATE_READY:
      return Lifecycle::Ready;
    case v1::SANDBOX_STATE_STOPPED:
      return Lifecycle::Stopped;
    case v1::SANDBOX_STATE_DELETED:
      return Lifecycle::Deleted;
    default:
      return Lifecycle::Failed;
  }
}

std::vector<Mutation> stored(const SandboxFacts& facts) {
  std::vector<Mutation> mutations{change::SetSubnet{facts.sandbox_id, facts.subnet},
                                  change::ForgetContainers{facts.sandbox_id}};
  for (const auto& [name, container] : facts.containers) {
    mutations.emplace_back(change::PutContainer{facts.sandbox_id, name, container});
  }
  return mutations;
}

const char* failure_code(Lifecycle state) {
  switch (state) {
    case Lifecycle::Resuming:
      return "SANDBOX_RESUME_FAILED";
    case Lifecycle::Stopping:
      return "SANDBOX_STOP_FAILED";
    case Lifecycle::Deleting:
      return "SANDBOX_DELETE_FAILED";
    case Lifecycle::Creating:
    case Lifecycle::Ready:
    case Lifecycle::Stopped:
    case Lifecycle::Failed:
    case Lifecycle::Deleted:
      break;
  }
  return "SANDBOX_CREATE_FAILED";
}

}  // namespace agbox
