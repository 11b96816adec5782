// SPDX-License-Identifier: Apache-2.0
#include "model/spec/tool_targets.h"

#include <string>
#include <string_view>

#include "base/path_within.h"
#include "model/spec/request_checks.h"

namespace agbox {
namespace {

Result<> check_one(const v1::BuiltinResource& tool, const std::string& source,
                   std::string_view target, bool is_mount) {
  // That of a copy may say that it is a directory.
  if (target.size() > 1 && target.ends_with('/')) target.remove_suffix(1);
  if (target == tool.target()) {
    return invalid_argument("conflicting mount target " + tool.target() + " for " + tool.source() +
                            " and " + source + ": builtin tool " + tool.tool() +
                            " needs it; choose another target, or leave the tool out");
  }
  const bool is_nested =
      is_path_within(target, tool.target()) || is_path_within(tool.target(), target);
  if (!is_mount || !tool.shadow_copy() || !is_nested) return {};
  return invalid_argument(
      "mount target " + std::string(target) + " is not possible: " + tool.source() +
      ", which has symbolic links that lead out of it, is copied to " + tool.target() +
      " for builtin tool " + tool.tool() + ", and the copy would be written to " + source +
      "; choose another target, or leave the "
      "tool out");
}

}  // namespace

Result<> check_tool_targets(const v1::CreateSpec& spec,
                            const store::v1::CreatedWith& created_with) {
  for (const store::v1::ToolSource& tool : created_with.tools()) {
    for (const v1::MountSpec& mount : spec.mounts()) {
      AGBOX_TRY_VOID(check_one(tool.resource(), mount.source(), mount.target(), true));
    }
    for (const v1::CopySpec& copy : spec.copies()) {
      AGBOX_TRY_VOID(check_one(tool.resource(), copy.source(), copy.target(), false));
    }
  }
  return {};
}

}  // namespace agbox
