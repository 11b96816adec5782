// SPDX-License-Identifier: Apache-2.0
#include "model/spec/builtin_tools.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "model/spec/request_checks.h"

namespace agbox {
namespace {

constexpr std::array<std::string_view, 7> kBuiltinTools = {"claude", "codex", "git",     "uv",
                                                           "npm",    "apt",   "opencode"};

}  // namespace

Result<> check_builtin_tools(const v1::CreateSpec& spec) {
  std::set<std::string_view> seen;
  for (const std::string& tool : spec.builtin_tools()) {
    if (tool.empty()) return invalid_argument("builtin resource id must not be empty");
    if (!seen.insert(tool).second) {
      return invalid_argument("duplicate builtin resource " + quoted_excerpt(tool));
    }
    if (std::ranges::find(kBuiltinTools, tool) == kBuiltinTools.end()) {
      return invalid_argument("unknown builtin resource " + quoted_excerpt(tool));
    }
  }
  return {};
}

}  // namespace agbox
