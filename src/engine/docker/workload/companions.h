// SPDX-License-Identifier: Apache-2.0
// The containers of a sandbox next to its primary. The methods are those of Engine, as steps that
// can be repeated. What runs in them is untrusted.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "async/task_group.h"
#include "engine/docker/api/engine_client.h"
#include "engine/docker/images/image_pulls.h"
#include "engine/docker/workload/container_settings.h"
#include "engine/engine.h"

namespace agbox {

// How the engine checks the health of this container, as the command of a process in it; empty if
// it does not.
std::vector<std::string> probe_command(const ContainerSeen& container);

class Companions {
 public:
  struct Parts {
    EngineClient& client;
    ImagePulls& pulls;
    TaskGroup& calls;  // that run to completion; see unbroken_call.h
  };

  Companions(Parts parts, std::string instance_id, Hardening hardening)
      : client_(parts.client),
        pulls_(parts.pulls),
        calls_(parts.calls),
        instance_id_(std::move(instance_id)),
        hardening_(std::move(hardening)) {}

  EngineAwaitable<> ensure_companion_image(CompanionFacts& facts, Engine::Progress progress);
  EngineAwaitable<> ensure_companion(CompanionFacts& facts, Attachments attachments);
  EngineAwaitable<> start_companion(CompanionFacts& facts);
  EngineAwaitable<CompanionSeen> inspect_companion(CompanionFacts facts);
  EngineAwaitable<ProbeOutcome> probe_companion(CompanionFacts facts,
                                                std::chrono::milliseconds timeout);
  EngineAwaitable<std::int64_t> start_companion_guest(CompanionFacts facts);
  EngineAwaitable<std::string> companion_output(CompanionFacts facts);
  EngineAwaitable<> stop_companion(CompanionFacts facts);

 private:
  // NotFound if it is gone; Conflict if what has its ID is not ours.
  EngineAwaitable<ContainerSeen> require_companion(const CompanionFacts& facts);
  ObjectOwner owner_of(const CompanionFacts& facts) const {
    return {.instance = instance_id_, .sandbox_id = facts.sandbox_id};
  }

  EngineClient& client_;
  ImagePulls& pulls_;
  TaskGroup& calls_;
  std::string instance_id_;
  Hardening hardening_;
};

}  // namespace agbox
