// SPDX-License-Identifier: Apache-2.0
// The tools of the host that a sandbox can be given by name.
#pragma once

#include "agbox/v1/spec.pb.h"
#include "base/result.h"

namespace agbox {

// Each is known, and given once.
Result<> check_builtin_tools(const v1::CreateSpec& spec);

}  // namespace agbox
