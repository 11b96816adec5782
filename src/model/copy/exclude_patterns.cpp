// SPDX-License-Identifier: Apache-2.0
#include "model/copy/exclude_patterns.h"

#include <ranges>
#include <utility>

#include "model/copy/path_pattern.h"

namespace agbox {

ExcludePatterns::ExcludePatterns(std::vector<std::string> patterns)
    : patterns_(std::move(patterns)) {
  std::erase_if(patterns_, [](const std::string& pattern) { return pattern.empty(); });
}

bool ExcludePatterns::excludes(std::string_view path) const {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string& entry : patterns_ | std::views::reverse) {
    std::string_view pattern = entry;
    const bool includes = pattern.starts_with('!');
    if (includes) pattern.remove_prefix(1);
    if (matches_path(pattern, path) || matches_path(pattern, name)) return !includes;
  }
  return false;
}

}  // namespace agbox
