// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/stored_work.h"

namespace agbox {
namespace {

Operation operation_of(const WorkState& state) {
  switch (state.lifecycle.state) {
    case Lifecycle::Creating:
      return Operation::Creating;
    case Lifecycle::Resuming:
      return Operation::Resuming;
    case Lifecycle::Stopping:
      return Operation::Stopping;
    case Lifecycle::Deleting:
      return Operation::Deleting;
    case Lifecycle::Failed:
      return cleans_up(state) ? Operation::CleaningUp : Operation::None;
    case Lifecycle::Ready:
    case Lifecycle::Stopped:
    case Lifecycle::Deleted:
      break;
  }
  return Operation::None;
}

Lifecycle lifecycle_of(const SandboxRecord& record) {
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

}  // namespace

OperationUnderWay stored(const WorkState& state) {
  return {.operation = operation_of(state),
          .reason = state.lifecycle.reason,
          .attempts = state.attempts};
}

WorkState work_of(const SandboxRecord& record) {
  const auto found = record.containers.find("");
  const store::v1::Container primary =
      found == record.containers.end() ? store::v1::Container() : found->second;
  const bool is_restarting =
      primary.restarting_start() != 0 && primary.restarting_start() == primary.start_count();
  return restored_work({.state = lifecycle_of(record), .reason = record.operation.reason},
                       record.operation.operation == Operation::CleaningUp,
                       record.operation.attempts, isolation_of(primary), restarts_of(primary),
                       is_restarting);
}

IsolationState isolation_of(const store::v1::Container& primary) {
  IsolationState isolation{.problem = primary.isolation_problem()};
  // An unknown number was written by a later version.
  if (primary.paused() != store::v1::Container::PAUSED_NO) {
    isolation.paused = primary.paused() == store::v1::Container::PAUSED_YES
                           ? IsolationState::Paused::Yes
                           : IsolationState::Paused::Begun;
  }
  return isolation;
}

void put_isolation(const IsolationState& isolation, store::v1::Container& primary) {
  primary.set_isolation_problem(isolation.problem);
  switch (isolation.paused) {
    case IsolationState::Paused::No:
      return primary.set_paused(store::v1::Container::PAUSED_NO);
    case IsolationState::Paused::Begun:
      return primary.set_paused(store::v1::Container::PAUSED_BEGUN);
    case IsolationState::Paused::Yes:
      return primary.set_paused(store::v1::Container::PAUSED_YES);
  }
}

RestartState restarts_of(const store::v1::Container& primary) {
  return {.count = primary.restart_count(), .last_exit = primary.last_exit()};
}

void put_restarts(const WorkState& state, store::v1::Container& primary) {
  primary.set_restart_count(state.restarts.count);
  primary.set_last_exit(state.restarts.last_exit);
  primary.set_restarting_start(is_restarting(state) ? primary.start_count() : 0);
}

std::vector<Mutation> stored(const SandboxFacts& facts) {
  std::vector<Mutation> mutations{change::SetSubnet{facts.sandbox_id, facts.subnet},
                                  change::ForgetContainers{facts.sandbox_id}};
  for (const auto& [name, container] : facts.containers) {
    mutations.emplace_back(change::PutContainer{facts.sandbox_id, name, container});
  }
  return mutations;
}

}  // namespace agbox
