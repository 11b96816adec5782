// SPDX-License-Identifier: Apache-2.0
// A path in a message for people: file names are bytes, and may contain newlines and terminal
// escape sequences.
#pragma once

#include <string>
#include <string_view>

namespace agbox {

// Control characters, backslashes and bytes that are not UTF-8 as \x1b; at most about 1 KiB, the
// beginning and the end of a longer path.
std::string shown_path(std::string_view path);

}  // namespace agbox
