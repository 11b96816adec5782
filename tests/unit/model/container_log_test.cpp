// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/container_log.h"

#include <gtest/gtest.h>

namespace agbox {
namespace {

using namespace std::chrono_literals;

TEST(LogCursor, NamesAPosition) {
  for (const LogPosition& position :
       {LogPosition{},
        LogPosition{.time = WallTime(1'700'000'000'123'456'789ns), .bytes = 16384}}) {
    EXPECT_EQ(parse_cursor(cursor_of(position)).value(), position);
  }
}

TEST(LogCursor, OfAnotherFormIsRefused) {
  for (const std::string_view bad :
       {"", "1", "+", "1+", "+1", "-1+1", "1+-1", "1+1 ", " 1+1", "1+1+1", "a+b",
        "99999999999999999999+1", "1+99999999999999999999"}) {
    const auto parsed = parse_cursor(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().reason(), reason::kInvalidArgument);
  }
}

}  // namespace
}  // namespace agbox
