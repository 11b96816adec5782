// SPDX-License-Identifier: Apache-2.0
// Sanitizes untrusted text for a terminal: an image name, a label or an error of the engine may
// contain escape sequences that move the cursor, rename the window or worse.
#pragma once

#include <string>
#include <string_view>

namespace agbox::cli {

// Escapes control characters as \x1b; keeps newline and tab.
std::string printable(std::string_view text);

// The same on one line, so that a value cannot fake a line of output: every run of newlines, tabs
// and spaces becomes one space.
std::string printable_line(std::string_view text);

}  // namespace agbox::cli
