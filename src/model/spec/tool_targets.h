// SPDX-License-Identifier: Apache-2.0
// Where the resources of builtin tools meet the mounts and copies of their spec.
#pragma once

#include "agbox/store/v1/record.pb.h"
#include "agbox/v1/spec.pb.h"
#include "base/result.h"

namespace agbox {

// Fails if a resource that the host has is to be where a mount or copy is. A resource that is
// copied must not have a mount below or above it either: the copy would be written to the host.
Result<> check_tool_targets(const v1::CreateSpec& spec, const store::v1::CreatedWith& created_with);

}  // namespace agbox
