// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/workload/container_loss.h"

#include <utility>

#include "model/object_names.h"

namespace agbox {
namespace {

SandboxInspection lost(PrimarySeen primary, std::string how) {
  return {.seen = {.primary = primary}, .loss = ContainerLoss{.how = std::move(how)}};
}

ContainerLoss exit_of(const ContainerSeen& container) {
  const std::string code = std::to_string(container.exit_code);
  return {.is_out_of_memory = container.was_oom_killed,
          .how = container.was_oom_killed ? "it ran out of memory and ended with code " + code
                                          : "it exited with code " + code,
          .exit_code = static_cast<int>(container.exit_code)};
}

// An engine that crashed while starting a container mistakes the end of that attempt for the end of
// the next one: it reports that the container ended and runs again, and has removed its network in
// between (seen with Docker 28).
bool is_cut_off(const ContainerSeen& container, const ObjectOwner& owner) {
  const auto attachment = container.networks.find(network_name(owner.sandbox_id));
  return attachment != container.networks.end() && attachment->second.empty();
}

CompanionSeen::Health health_of(const ContainerSeen& container) {
  if (container.health == "starting") return CompanionSeen::Health::Starting;
  if (container.health == "healthy") return CompanionSeen::Health::Healthy;
  if (container.health == "unhealthy") return CompanionSeen::Health::Unhealthy;
  return CompanionSeen::Health::None;
}

}  // namespace

std::string start_mark(const ContainerSeen& seen) {
  if (!seen.started_at) return {};
  return std::to_string(seen.started_at->time_since_epoch().count());
}

EngineError asked_again(const EngineError& error) {
  if (error.kind() != EngineErrorKind::TimedOut) return error;
  return {EngineErrorKind::Unavailable, error.message()};
}

SandboxInspection judge_primary(const store::v1::Container& kept,
                                const std::optional<ContainerSeen>& container,
                                const ObjectOwner& owner) {
  if (!container) return lost(PrimarySeen::Missing, "it was removed");
  if (!owner.owns(container->labels)) {
    return lost(PrimarySeen::Foreign, "what has its id is not ours");
  }
  if (!container->is_up()) {
    if (container->status == "created") return lost(PrimarySeen::Created, "it was not started");
    return {.seen = {.primary = PrimarySeen::Exited}, .loss = exit_of(*container)};
  }
  // The guest of another start does not know what this one accepted.
  if (!kept.engine_started_at().empty() && kept.engine_started_at() != start_mark(*container)) {
    return lost(PrimarySeen::OtherStart, "it ended and was started again by another program");
  }
  if (is_cut_off(*container, owner)) {
    return lost(PrimarySeen::OtherStart, "the engine took its network away");
  }
  const auto primary = container->is_paused ? PrimarySeen::Paused : PrimarySeen::Running;
  return {.seen = {.primary = primary}, .loss = std::nullopt};
}

CompanionSeen judge_companion(const std::optional<ContainerSeen>& container,
                              const ObjectOwner& owner, const std::string& name) {
  using State = CompanionSeen::State;
  if (!container) return {.state = State::Missing};
  if (!owner.owns(container->labels) || companion_of(container->labels) != name) {
    return {.state = State::Foreign};
  }
  CompanionSeen seen{.start_mark = start_mark(*container)};
  if (container->is_up()) {
    seen.state = container->is_paused ? State::Paused : State::Running;
    // What has ended is unhealthy to the engine.
    seen.health = health_of(*container);
    seen.probe_output = container->probe_output;
    seen.has_network = container->networks.contains(network_name(owner.sandbox_id)) &&
                       !is_cut_off(*container, owner);
  } else if (container->status == "created") {
    seen.state = State::Created;
  } else {
    seen.state = State::Exited;
    seen.loss = exit_of(*container);
  }
  return seen;
}

}  // namespace agbox
