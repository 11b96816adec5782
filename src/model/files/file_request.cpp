// SPDX-License-Identifier: Apache-2.0
#include "model/files/file_request.h"

#include <string>
#include <string_view>
#include <utility>

#include "base/shown_path.h"

namespace agbox {
namespace {

// PATH_MAX without its NUL.
constexpr std::size_t kMaxPathBytes = 4095;
constexpr std::string_view kHomeInside = "/home/agbox";

// Absolute; "~" is the home of the runtime user.
Result<std::string> parse_path(std::string_view path) {
  const auto refused = [](std::string what) {
    return fail(reason::kInvalidArgument, "path: " + std::move(what));
  };
  if (path.empty()) return refused("must not be empty");
  if (path.contains('\0')) return refused("must not contain a NUL byte");
  std::string absolute(path);
  if (path == "~" || path.starts_with("~/")) {
    absolute = std::string(kHomeInside) + std::string(path.substr(1));
  }
  if (!absolute.starts_with('/')) {
    return refused(shown_path(path) + " must be absolute, or begin with ~/");
  }
  if (absolute.size() > kMaxPathBytes) {
    return refused("is longer than " + std::to_string(kMaxPathBytes) + " bytes");
  }
  return absolute;
}

Result<> check_sandbox_id(const std::string& sandbox_id) {
  if (!sandbox_id.empty()) return {};
  return fail(reason::kInvalidArgument, "sandbox_id: must not be empty");
}

}  // namespace

Result<FileOrder> parse_copy_in(const v1::CopyInTarget& target) {
  AGBOX_TRY_VOID(check_sandbox_id(target.sandbox_id()));
  AGBOX_TRY(path, parse_path(target.path()));
  bool is_content = false;
  switch (target.placement()) {
    case v1::COPY_PLACEMENT_UNSPECIFIED:
    case v1::COPY_PLACEMENT_ROOT:
      break;
    case v1::COPY_PLACEMENT_CONTENT:
      is_content = true;
      break;
    default:
      return fail(reason::kInvalidArgument,
                  "placement: must be COPY_PLACEMENT_ROOT or COPY_PLACEMENT_CONTENT");
  }
  return FileOrder{.direction = FileOrder::Direction::In,
                   .path = std::move(path),
                   .is_content = is_content,
                   .as_root = target.as_root()};
}

Result<FileOrder> parse_copy_out(const v1::CopyOutRequest& request) {
  AGBOX_TRY_VOID(check_sandbox_id(request.sandbox_id()));
  AGBOX_TRY(path, parse_path(request.path()));
  return FileOrder{.direction = FileOrder::Direction::Out,
                   .path = std::move(path),
                   .is_content = false,
                   .as_root = request.as_root()};
}

}  // namespace agbox
