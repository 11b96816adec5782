// SPDX-License-Identifier: Apache-2.0
#include "control/event_cursor.h"

#include <gmock/gmock.h>

#include "model/reasons.h"

namespace agbox {
namespace {

constexpr const char* kInstance = "5a3c1f0e-7d52-4c53-9a51-0d1c8b6f2e77";

TEST(EventCursor, IsReadBack) {
  EXPECT_EQ(event_cursor(kInstance, 17), "5a3c1f0e-17");
  for (const std::uint64_t position : {std::uint64_t{0}, std::uint64_t{1}, UINT64_MAX}) {
    EXPECT_EQ(parse_event_cursor(kInstance, UINT64_MAX, event_cursor(kInstance, position)),
              position);
  }
}

TEST(EventCursor, WhatIsNoneIsInvalid) {
  for (const std::string wrong :
       {"", "17", "5a3c1f0e", "5a3c1f0e-", "5a3c1f0e-x", "5a3c1f0e-1x", "5a3c1f0e--1",
        "5a3c1f0e-18446744073709551616", "5a3c1f0e/17", "5a3c1f0-17"}) {
    const auto refused = parse_event_cursor(kInstance, 100, wrong);
    ASSERT_FALSE(refused.has_value()) << wrong;
    EXPECT_EQ(refused.error().reason(), reason::kInvalidArgument) << wrong;
  }
}

TEST(EventCursor, OfAnotherStoreOrOfTheFutureIsOutOfRange) {
  const auto future = parse_event_cursor(kInstance, 16, "5a3c1f0e-17");
  ASSERT_FALSE(future.has_value());
  EXPECT_EQ(future.error().reason(), reason::kEventCursorOutOfRange);
  EXPECT_THAT(future.error().message(), testing::HasSubstr("beyond the newest event"));
  EXPECT_EQ(future.error().metadata().at("cursor"), "5a3c1f0e-17");
  const auto other = parse_event_cursor(kInstance, 100, "99999999-17");
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().reason(), reason::kEventCursorOutOfRange);
  EXPECT_THAT(other.error().message(), testing::HasSubstr("another daemon's store"));
}

}  // namespace
}  // namespace agbox
