// SPDX-License-Identifier: Apache-2.0
// A patch for a terminal: in the colors of git, and without the control characters of the files.
#pragma once

#include <string>
#include <string_view>

namespace agbox::cli {

std::string colored_patch(std::string_view patch, bool has_colors);

}  // namespace agbox::cli
