// SPDX-License-Identifier: Apache-2.0
// Whether a sandbox still has the container that it was made ready in, judged by what the engine
// says of it, and in which words its loss is told. Pure.
#pragma once

#include <optional>
#include <string>

#include "agbox/store/v1/record.pb.h"
#include "engine/docker/api/observations.h"
#include "engine/docker/objects/object_owner.h"
#include "model/sandbox/lifecycle.h"
#include "model/sandbox/restart_plan.h"

namespace agbox {

struct ContainerLoss {
  bool is_out_of_memory = false;
  std::string how;  // for people, such as "it exited with code 137"

  bool operator==(const ContainerLoss&) const = default;
};

// What the engine shows of a sandbox, in the terms of the restart plan and for people.
struct SandboxLook {
  SandboxSeen seen;
  std::optional<ContainerLoss> loss;  // nothing while it runs and is still the start that we know
};

// `kept` is what is stored of the container, `container` nothing where the engine has no such one.
// Whether the network itself is there is not judged.
SandboxLook judge_primary(const store::v1::Container& kept,
                          const std::optional<ContainerSeen>& container, const ObjectOwner& owner);

// The engine's word for a start, as it is stored.
std::string start_mark(const ContainerSeen& seen);

// Of a container that ended so often, and so soon, that it is not started again.
Failure crash_failure(const ContainerLoss& loss);

}  // namespace agbox
