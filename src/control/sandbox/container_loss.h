// SPDX-License-Identifier: Apache-2.0
// Whether a sandbox still has the container that it was made ready in, judged by what the engine
// says of it, and in which words its loss is told. Pure.
#pragma once

#include <optional>
#include <string>

#include "agbox/store/v1/record.pb.h"
#include "engine/docker/api/observations.h"
#include "engine/docker/objects/object_owner.h"
#include "model/sandbox/restart_plan.h"

namespace agbox {

// `kept` is what is stored of the container, `container` nothing where the engine has no such one.
// Whether the network itself is there is not judged.
SandboxLook judge_primary(const store::v1::Container& kept,
                          const std::optional<ContainerSeen>& container, const ObjectOwner& owner);

// The engine's word for a start, as it is stored.
std::string start_mark(const ContainerSeen& seen);

}  // namespace agbox
