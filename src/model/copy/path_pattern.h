// SPDX-License-Identifier: Apache-2.0
// Patterns for paths, as Go's filepath.Match has them: * and ? match no slash, [a-z] and [^a-z] are
// classes, a backslash escapes. One addition: a component that is ** matches any number of
// components, also none. Pure; names are bytes, characters are UTF-8 where they can be.
#pragma once

#include <string>
#include <string_view>

namespace agbox {

// False for a class that does not end and for a backslash at the end: such a pattern matches
// nothing.
bool is_path_pattern(std::string_view pattern);

// Whether the pattern matches the whole of `path`. Takes at most about the product of both lengths.
bool matches_path(std::string_view pattern, std::string_view path);

}  // namespace agbox
