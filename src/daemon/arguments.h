// SPDX-License-Identifier: Apache-2.0
// The command line of agboxd: --help and --version, and nothing to configure.
#pragma once

#include <span>
#include <string>

#include "base/result.h"

namespace agbox {

enum class Invocation { Serve, ShowHelp, ShowVersion };

// --help and --version take precedence at any position; other arguments are refused.
Result<Invocation> parse_arguments(std::span<const std::string> arguments);

std::string help_text();

}  // namespace agbox
