// SPDX-License-Identifier: Apache-2.0
// Whether a sandbox still has the container that it was made ready in, judged by what the engine
// says of it. Pure.
#pragma once

#include <optional>
#include <string>

#include "agbox/store/v1/record.pb.h"
#include "docker/observations.h"
#include "model/lifecycle.h"

namespace agbox {

struct ContainerLoss {
  bool is_out_of_memory = false;
  std::string how;  // for people, such as "it exited with code 137"

  bool operator==(const ContainerLoss&) const = default;
};

// Nothing while it runs and is still the start of which `kept` is stored. `seen` is nothing where
// the engine has no such container.
std::optional<ContainerLoss> loss_of(const store::v1::Container& kept,
                                     const std::optional<ContainerSeen>& seen);

// The engine's word for a start, as it is stored.
std::string start_mark(const ContainerSeen& seen);

Failure sandbox_failure(const ContainerLoss& loss);

}  // namespace agbox
