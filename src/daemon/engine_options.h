// SPDX-License-Identifier: Apache-2.0
// Derives the engine's options from the configuration and the machine.
#pragma once

#include <string>

#include "base/result.h"
#include "daemon/configuration.h"
#include "engine/docker/docker_engine.h"
#include "paths/fixed_paths.h"

namespace agbox {

// Fails if the host uses addresses of the configured pool.
Result<DockerEngineOptions> engine_options(const Configuration& configuration,
                                           const Environment& environment, std::string instance_id);

}  // namespace agbox
