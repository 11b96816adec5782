// SPDX-License-Identifier: Apache-2.0
// Asks the user at a terminal before something that cannot be undone.
#pragma once

#include <string>

#include "cli/console.h"

namespace agbox::cli {

// True for "y" or "Y". Reads stdin, which has to be a terminal.
bool is_confirmed(Console& console, const std::string& question);

}  // namespace agbox::cli
