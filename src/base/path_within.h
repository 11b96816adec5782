// SPDX-License-Identifier: Apache-2.0
// Which of two paths contains the other, by their text.
#pragma once

#include <string_view>

namespace agbox {

// Whether `path` is `directory` or below it. Both are without links, dots and slashes at their end,
// and both absolute or both relative to the same directory.
inline bool is_path_within(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

}  // namespace agbox
