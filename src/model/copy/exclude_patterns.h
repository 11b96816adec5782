// SPDX-License-Identifier: Apache-2.0
// What a copy leaves out: each pattern is compared with the path below the source and with the last
// component of it. The last pattern that matches decides; one that begins with ! includes again,
// but nothing below a directory that is left out. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace agbox {

class ExcludePatterns {
 public:
  ExcludePatterns() = default;
  // Empty patterns have no effect, and neither have malformed ones: see is_path_pattern().
  explicit ExcludePatterns(std::vector<std::string> patterns);

  // `path` is below the source, without a slash at its ends.
  bool excludes(std::string_view path) const;

 private:
  std::vector<std::string> patterns_;
};

}  // namespace agbox
