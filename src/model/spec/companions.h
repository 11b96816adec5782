// SPDX-License-Identifier: Apache-2.0
// The containers next to the primary: companions, required and optional services. All three lists
// have one message and share their names, which are DNS names on the sandbox's network.
#pragma once

#include <cstdint>

#include "agbox/v1/spec.pb.h"
#include "base/result.h"

namespace agbox {

// All but their limits.
Result<> check_companions(const v1::CreateSpec& spec);
Result<> check_companion_limits(const v1::CreateSpec& spec);
// Not more than the engine has; 0: that is not known.
Result<> check_companion_cpus(const v1::CreateSpec& spec, std::int64_t cpus);

}  // namespace agbox
