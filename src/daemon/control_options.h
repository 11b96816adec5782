// SPDX-License-Identifier: Apache-2.0
// What the control plane needs from the configuration and the machine.
#pragma once

#include <string>

#include "base/result.h"
#include "control/control_plane.h"
#include "daemon/configuration.h"
#include "paths/fixed_paths.h"

namespace agbox {

// Makes the folder for the daemon's own state where it is not there yet.
Result<ControlOptions> control_options(const Configuration& configuration, const FixedPaths& paths,
                                       const Environment& environment);

}  // namespace agbox
