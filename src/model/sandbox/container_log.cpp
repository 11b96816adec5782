// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/container_log.h"

#include <charconv>

namespace agbox {

std::string cursor_of(const LogPosition& position) {
  return std::to_string(position.time.time_since_epoch().count()) + "+" +
         std::to_string(position.bytes);
}

Result<LogPosition> parse_cursor(std::string_view cursor) {
  std::int64_t nanoseconds = 0;
  std::uint64_t bytes = 0;
  const char* const end = cursor.data() + cursor.size();
  const auto time = std::from_chars(cursor.data(), end, nanoseconds);
  if (time.ec == std::errc() && nanoseconds >= 0 && time.ptr != end && *time.ptr == '+') {
    const auto count = std::from_chars(time.ptr + 1, end, bytes);
    if (count.ec == std::errc() && count.ptr == end) {
      return LogPosition{.time = WallTime(std::chrono::nanoseconds(nanoseconds)), .bytes = bytes};
    }
  }
  return fail(reason::kInvalidArgument,
              "cursor is not one of a ReadContainerLogsResponse; leave it empty to begin at the "
              "beginning");
}

}  // namespace agbox
