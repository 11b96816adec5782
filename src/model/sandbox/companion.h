// SPDX-License-Identifier: Apache-2.0
// A container next to the primary: a required or optional service, or a companion. What is known of
// it, what the engine shows of it, and what follows from both. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agbox/store/v1/record.pb.h"
#include "agbox/v1/sandbox.pb.h"
#include "agbox/v1/spec.pb.h"
#include "model/sandbox/restart_plan.h"
#include "model/sandbox/sandbox_facts.h"

namespace agbox {

// The facts of one companion, owned by what supervises it. The engine keeps `container` true
// however a call ends.
struct CompanionFacts {
  std::string sandbox_id;
  v1::CompanionRole role = v1::COMPANION_ROLE_COMPANION;
  v1::CompanionContainerSpec spec;
  std::map<std::string, std::string> sandbox_labels;
  std::vector<std::string> dns;
  std::string engine_id;
  store::v1::Container container;

  const std::string& name() const { return spec.name(); }
  bool is_required() const { return role == v1::COMPANION_ROLE_REQUIRED_SERVICE; }
};

// Of a sandbox, in the order in which they are declared: required services, optional services,
// companions. With what the facts know of their containers.
std::vector<CompanionFacts> companions_of(const SandboxFacts& facts);

// What the engine shows of a companion's container.
struct CompanionSeen {
  enum class State {
    Missing,
    Foreign,  // what has its ID does not carry its labels
    Created,  // it was never started
    Running,
    Paused,
    Exited,
  };
  // As the engine's own health check has it.
  enum class Health {
    None,  // it has no health check
    Starting,
    Healthy,
    Unhealthy,
  };
  State state = State::Missing;
  bool has_network = true;  // a running one may have lost it to an engine that crashed
  Health health = Health::None;
  std::string probe_output{};           // of the latest check, for people; may be empty
  std::string start_mark{};             // distinguishes one start from the next
  std::optional<ContainerLoss> loss{};  // how it exited

  bool operator==(const CompanionSeen&) const = default;
};

// One run of a companion's health check.
struct ProbeOutcome {
  int exit_code = 0;
  std::string output{};  // its end, for people

  bool is_healthy() const { return exit_code == 0; }
  bool operator==(const ProbeOutcome&) const = default;
};

// How long a companion may take to become healthy: the time in which the engine's own check would
// have counted enough failures, and five minutes at most.
std::chrono::milliseconds health_limit(const v1::HealthcheckConfig& check);
// How long one run of the check may take.
std::chrono::milliseconds probe_timeout(const v1::HealthcheckConfig& check);
// Between two of our own runs of the check, after this long in total. A service that starts quickly
// is noticed at once; one that takes long does not cost a processor.
std::chrono::milliseconds probe_pause(std::chrono::milliseconds elapsed);

}  // namespace agbox
