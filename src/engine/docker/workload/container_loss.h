// SPDX-License-Identifier: Apache-2.0
// Whether a sandbox still has the container that it became ready in, judged by what the engine
// reports, and how its loss is described. Pure.
#pragma once

#include <optional>
#include <string>

#include "agbox/store/v1/record.pb.h"
#include "engine/docker/api/observations.h"
#include "engine/docker/objects/object_owner.h"
#include "model/sandbox/restart_plan.h"

namespace agbox {

// `kept` is what is stored of the container; `container` is nullopt if the engine does not have it.
// Does not judge whether the network exists.
SandboxInspection judge_primary(const store::v1::Container& kept,
                                const std::optional<ContainerSeen>& container,
                                const ObjectOwner& owner);

// What distinguishes a start from others, as it is stored.
std::string start_mark(const ContainerSeen& seen);

}  // namespace agbox
