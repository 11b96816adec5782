// SPDX-License-Identifier: Apache-2.0
// Generates docs/configuration_reference.md from the table of keys and the fixed paths.
#pragma once

#include <string>

namespace agbox {

std::string configuration_reference();

}  // namespace agbox
