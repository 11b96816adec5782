// SPDX-License-Identifier: Apache-2.0
#include "base/tar/tree_counts.h"

#include <cerrno>
#include <system_error>

#include "base/shown_path.h"

namespace agbox {
namespace {

Reason reason_of(int error_number) {
  switch (error_number) {
    case ENOENT:
      return reason::kPathNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return reason::kPathAccessDenied;
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case EEXIST:
    case EBUSY:
      return reason::kPathConflict;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return reason::kNoSpace;
    default:
      return reason::kCopyFailed;
  }
}

}  // namespace

Error path_error(std::string_view path, int error_number) {
  return {reason_of(error_number),
          shown_path(path) + ": " + std::generic_category().message(error_number)};
}

}  // namespace agbox
