// SPDX-License-Identifier: Apache-2.0
// A YAML document as a tree. Aliases share the node of their anchor and merge keys (<<) are
// applied. Callers are not trusted: a document is refused before it takes much memory, also one
// whose aliases would expand to much.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace agbox {

struct YamlNode;
using YamlNodePtr = std::shared_ptr<const YamlNode>;

struct YamlNode {
  enum class Kind { Scalar, List, Map };

  Kind kind = Kind::Scalar;
  // Where it begins, from 1.
  std::size_t line = 0;
  std::size_t column = 0;
  std::string text;  // of a scalar
  // A scalar without quotes that no tag makes a string: it may be a number, a boolean or null.
  bool is_plain = false;
  std::vector<YamlNodePtr> items;
  std::vector<std::pair<YamlNodePtr, YamlNodePtr>> entries;  // as declared; keys are unique scalars
  std::size_t weight = 0;  // its size in memory if all aliases in it were copies

  bool is_null() const;
};

// The first document of `text`. Every error begins with the line and column of its cause.
Result<YamlNodePtr> parse_yaml(std::string_view text);

// INVALID_ARGUMENT with "line <l>, column <c>: <message>".
std::unexpected<Error> yaml_error(const YamlNode& node, std::string_view message);

}  // namespace agbox
