// SPDX-License-Identifier: Apache-2.0
// The paths of mounts and copies: where on the host they come from and where in the container they
// go. What their text alone shows is checked here; what the files show, by src/ingress.
#pragma once

#include "agbox/v1/spec.pb.h"
#include "base/result.h"

namespace agbox {

// Checks every mount, then every copy. On success their paths are clean: one slash between
// components, no "." and, in targets, no "~". A "~" of a source is the home of the daemon's user.
// A slash at the end of a copy's target stays: it means a directory.
Result<> clean_ingress_paths(v1::CreateSpec& spec);

}  // namespace agbox
