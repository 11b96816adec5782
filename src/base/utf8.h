// SPDX-License-Identifier: Apache-2.0
// External text may contain any bytes; what we write to logs and the wire must be UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace agbox {

// Length of the well-formed UTF-8 sequence at the start of the non-empty `text`; 0 if there is
// none.
std::size_t utf8_length(std::string_view text);

// Replaces every byte that is not part of well-formed UTF-8 by U+FFFD.
std::string to_utf8(std::string_view text);

// The longest prefix of at most `limit` bytes that does not split a character.
std::string_view utf8_prefix(std::string_view text, std::size_t limit);

}  // namespace agbox
