// SPDX-License-Identifier: Apache-2.0
// What a caller may ask for and not every engine has: limits of a container's files, GPUs, and the
// init of companions.
// Docker refuses them in words that name neither the field nor a remedy.
#pragma once

#include <string>

#include "engine/docker/api/engine_identity.h"
#include "engine/engine_error.h"
#include "model/spec/sandbox_spec.h"

namespace agbox {

// Why this engine cannot keep any disk_limit; empty if it can, or that depends on more.
std::string disk_limit_shortcoming(const EngineIdentity& engine);

// The refusal of a sandbox's container in terms of its spec. Any other error stays as it is.
EngineError in_terms_of(const SandboxSpec& spec, const EngineError& refusal);
EngineError in_terms_of(const v1::CompanionContainerSpec& spec, const EngineError& refusal);

}  // namespace agbox
