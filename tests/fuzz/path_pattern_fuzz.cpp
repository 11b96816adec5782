// SPDX-License-Identifier: Apache-2.0
// The patterns of copies: the first line is a path, the rest is a .gitignore and, line by line, the
// exclude patterns.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/copy/exclude_patterns.h"
#include "model/copy/gitignore.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The bytes are characters to us.
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\n');
  const std::string_view path = input.substr(0, end);
  const std::string_view text = end == std::string_view::npos ? "" : input.substr(end + 1);
  std::vector<std::string> patterns;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = std::min(rest.find('\n'), rest.size());
    patterns.emplace_back(rest.substr(0, length));
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  agbox::ExcludePatterns(std::move(patterns)).excludes(path);
  agbox::Gitignore(text).matches(path);
  return 0;
}
