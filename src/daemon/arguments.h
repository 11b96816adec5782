// SPDX-License-Identifier: Apache-2.0
// The command line of agboxd: two questions that anybody may ask, and nothing to configure.
#pragma once

#include <span>
#include <string>

#include "base/result.h"

namespace agbox {

enum class Invocation { Serve, ShowHelp, ShowVersion };

// --help and --version win wherever they stand; any other argument is refused.
Result<Invocation> parse_arguments(std::span<const std::string> arguments);

std::string help_text();

}  // namespace agbox
