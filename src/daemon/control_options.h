// SPDX-License-Identifier: Apache-2.0
// Derives the options of the control plane and of its place from the configuration and the machine.
#pragma once

#include <string>

#include "base/result.h"
#include "control/control_plane.h"
#include "daemon/configuration.h"
#include "paths/fixed_paths.h"
#include "place/local/local_place.h"

namespace agbox {

ControlOptions control_options(const Configuration& configuration, const FixedPaths& paths);

// Creates the state directory if missing.
Result<LocalPlaceOptions> place_options(const Configuration& configuration, const FixedPaths& paths,
                                        const Environment& environment,
                                        const std::string& instance_id);

}  // namespace agbox
