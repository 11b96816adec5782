// SPDX-License-Identifier: Apache-2.0
// Whether a sandbox still has the container that it became ready in, and what state its companions
// are in, judged by what the engine reports, and how a loss is described. Pure.
#pragma once

#include <optional>
#include <string>

#include "agbox/store/v1/record.pb.h"
#include "engine/docker/api/observations.h"
#include "engine/docker/objects/object_owner.h"
#include "engine/engine_error.h"
#include "model/sandbox/companion.h"
#include "model/sandbox/restart_plan.h"

namespace agbox {

// `kept` is what is stored of the container; `container` is nullopt if the engine does not have it.
// Does not judge whether the network exists.
SandboxInspection judge_primary(const store::v1::Container& kept,
                                const std::optional<ContainerSeen>& container,
                                const ObjectOwner& owner);

CompanionSeen judge_companion(const std::optional<ContainerSeen>& container,
                              const ObjectOwner& owner, const std::string& name);

// Nothing is decided about a container that the engine does not answer about: it is inspected
// again.
EngineError asked_again(const EngineError& error);

// What distinguishes a start from others, as it is stored.
std::string start_mark(const ContainerSeen& seen);

}  // namespace agbox
