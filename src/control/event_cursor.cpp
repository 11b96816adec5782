// SPDX-License-Identifier: Apache-2.0
#include "control/event_cursor.h"

#include <charconv>

#include "model/reasons.h"
#include "model/spec/request_checks.h"

namespace agbox {
namespace {

constexpr std::size_t kStoreNameBytes = 8;  // of a random UUID: enough to tell stores apart

std::unexpected<Error> out_of_range(const std::string& cursor, const std::string& why) {
  return fail(reason::kEventCursorOutOfRange,
              "cursor " + quoted_excerpt(cursor) + " " + why +
                  "; subscribe from EVENTS_START_OLDEST, and list the sandboxes",
              {{"cursor", excerpt(cursor)}});
}

}  // namespace

std::string event_cursor(std::string_view instance_id, std::uint64_t position) {
  return std::string(instance_id.substr(0, kStoreNameBytes)) + "-" + std::to_string(position);
}

Result<std::uint64_t> parse_event_cursor(std::string_view instance_id, std::uint64_t newest,
                                         const std::string& cursor) {
  const std::string_view text = cursor;
  std::uint64_t position = 0;
  const bool has_name = text.size() > kStoreNameBytes + 1 && text[kStoreNameBytes] == '-';
  const std::string_view number = has_name ? text.substr(kStoreNameBytes + 1) : std::string_view();
  const char* end = number.data() + number.size();
  const auto [rest, problem] = std::from_chars(number.data(), end, position);
  if (number.empty() || problem != std::errc() || rest != end) {
    return invalid_argument("cursor: " + quoted_excerpt(cursor) +
                            " is not one that SubscribeEvents gave out");
  }
  if (text.substr(0, kStoreNameBytes) != instance_id.substr(0, kStoreNameBytes)) {
    return out_of_range(cursor, "is of another daemon's store");
  }
  if (position > newest) return out_of_range(cursor, "is beyond the newest event");
  return position;
}

}  // namespace agbox
