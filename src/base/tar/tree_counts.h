// SPDX-License-Identifier: Apache-2.0
// What packing and unpacking a tree of files have in common: how much it is, how much it may be,
// and why it can fail.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace agbox {

namespace reason {

inline constexpr Reason kPathNotFound{ErrorCode::NotFound, "PATH_NOT_FOUND"};
inline constexpr Reason kPathAccessDenied{ErrorCode::FailedPrecondition, "PATH_ACCESS_DENIED"};
inline constexpr Reason kPathConflict{ErrorCode::FailedPrecondition, "PATH_CONFLICT"};
inline constexpr Reason kNoSpace{ErrorCode::ResourceExhausted, "NO_SPACE"};
inline constexpr Reason kCopyTooLarge{ErrorCode::ResourceExhausted, "COPY_TOO_LARGE"};
inline constexpr Reason kCopyFailed{ErrorCode::FailedPrecondition, "COPY_FAILED"};

}  // namespace reason

struct TreeCounts {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;  // of files, as stored: holes of sparse files do not count

  bool operator==(const TreeCounts&) const = default;
};

// Of the directories of an entry, each of which is open.
inline constexpr std::size_t kMaxTreeDepth = 128;

struct TreeLimits {
  std::uint64_t entries = 2'000'000;
  std::uint64_t bytes = std::uint64_t{1} << 40;
};

using TreeProgress = std::function<void(const TreeCounts&)>;

// "<path>: <error>", with the reason that the errno stands for.
Error path_error(std::string_view path, int error_number);

}  // namespace agbox
