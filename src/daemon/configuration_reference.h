// SPDX-License-Identifier: Apache-2.0
// docs/configuration_reference.md as text, made from the table of keys and the fixed paths.
#pragma once

#include <string>

namespace agbox {

std::string configuration_reference();

}  // namespace agbox
