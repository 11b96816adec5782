// SPDX-License-Identifier: Apache-2.0
// Text from elsewhere, made fit for a terminal: an image, a label or an error of the engine may
// carry escape sequences that move the cursor, rename the window or worse.
#pragma once

#include <string>
#include <string_view>

namespace agbox::cli {

// Control characters become \x1b and the like; newline and tab stay.
std::string printable(std::string_view text);

// The same as one line, so that a value cannot pass for a line of ours: each run of newlines, tabs
// and spaces becomes one space.
std::string printable_line(std::string_view text);

}  // namespace agbox::cli
