// SPDX-License-Identifier: Apache-2.0
#include "base/rfc3339.h"

#include <gtest/gtest.h>

namespace agbox {
namespace {

using namespace std::chrono;

TEST(ParseRfc3339, ReadsWhatEnginesWrite) {
  const WallTime base = WallTime(sys_days(2026y / 11 / 15) + 10h + 44min + 24s);
  EXPECT_EQ(parse_rfc3339("2026-11-15T10:44:24Z"), base);
  EXPECT_EQ(parse_rfc3339("2026-11-15T10:44:24.158054801Z"), base + 158'054'801ns);
  EXPECT_EQ(parse_rfc3339("2026-11-15T10:44:24.1580548019Z"), base + 158'054'801ns);
  EXPECT_EQ(parse_rfc3339("2026-11-15T12:44:24.5+02:00"), base + 500ms);
  EXPECT_EQ(parse_rfc3339("2026-11-15T05:14:24-05:30"), base);
  for (const std::string_view bad :
       {"", "2026", "2026-11-15", "2026-13-15T10:44:24Z", "2026-02-30T10:44:24Z",
        "2026-11-15T25:44:24Z", "2026-11-15T10:44:24", "2026-11-15T10:44:24.Z",
        "2026-11-15T10:44:24+0200", "9999-11-15T10:44:24Z", "2026-11-15T10:44:24Zx"}) {
    EXPECT_EQ(parse_rfc3339(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace agbox
