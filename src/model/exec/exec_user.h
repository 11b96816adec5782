// SPDX-License-Identifier: Apache-2.0
// The user that runs an exec, as callers write it: agbox, root, any other name or uid of the
// container, optionally with ":group". Whether it exists is known only in the container.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace agbox {

// INVALID_ARGUMENT that names the field if it cannot be a user of any container. Empty is valid.
Result<> check_exec_user(std::string_view user);

}  // namespace agbox
