// SPDX-License-Identifier: Apache-2.0
// Text from outside may hold any bytes; what we write to the log or the wire must be UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace agbox {

// Length of the well-formed UTF-8 sequence at the start of `text`, which is not empty; 0 where
// there is none.
std::size_t utf8_length(std::string_view text);

// The text with U+FFFD in place of every byte that is not part of well-formed UTF-8.
std::string to_utf8(std::string_view text);

// The longest prefix of at most `limit` bytes that does not cut a character of well-formed UTF-8.
std::string_view utf8_prefix(std::string_view text, std::size_t limit);

}  // namespace agbox
