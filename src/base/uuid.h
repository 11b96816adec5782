// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace agbox {

// A random (version 4) UUID in lower case, 36 characters.
std::string random_uuid();

}  // namespace agbox
