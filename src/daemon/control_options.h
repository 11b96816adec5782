// SPDX-License-Identifier: Apache-2.0
// Derives the control plane's options from the configuration and the machine.
#pragma once

#include <string>

#include "base/result.h"
#include "control/control_plane.h"
#include "daemon/configuration.h"
#include "paths/fixed_paths.h"

namespace agbox {

// Creates the state directory if missing.
Result<ControlOptions> control_options(const Configuration& configuration, const FixedPaths& paths);

}  // namespace agbox
