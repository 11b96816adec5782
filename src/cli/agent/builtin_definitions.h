// SPDX-License-Identifier: Apache-2.0
// The agents that agbox knows by itself: the files of share/agents, compiled in.
#pragma once

#include <span>
#include <string_view>

namespace agbox::cli {

struct BuiltinDefinition {
  std::string_view name;
  std::string_view description;
  std::string_view yaml;
};

// Sorted by name.
std::span<const BuiltinDefinition> builtin_definitions();

}  // namespace agbox::cli
