// SPDX-License-Identifier: Apache-2.0
#include "model/duration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agbox {
namespace {

using namespace std::chrono_literals;

TEST(Duration, ReadsGoNotation) {
  const std::pair<std::string_view, std::chrono::nanoseconds> rows[] = {
      {"0", 0ns},
      {"+0", 0ns},
      {"0s", 0ns},
      {"30m", 30min},
      {"168h", 168h},
      {"1h30m", 90min},
      {"1.5h", 90min},
      {".5s", 500ms},
      {"5.s", 5s},
      {"250ms", 250ms},
      {"3us", 3us},
      {"3\xC2\xB5s", 3us},
      {"3\xCE\xBCs", 3us},
      {"7ns", 7ns},
      {"-1m2s", -62s},
      {"1h0.000000001s", 1h + 1ns},
      {"0.3333333333333333333h", 1199999999999ns},
  };
  for (const auto& [text, expected] : rows) {
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(*parsed, expected) << text;
  }
}

TEST(Duration, RefusesTheRestAndQuotesIt) {
  for (const char* text : {"", "-", "1", "1d", "m", ".s", "1h 2m", " 1h", "1h-2m", "--1h", "0x1h",
                           "9999999999h", "99999999999999999999s", "1e3s", "NaN"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_THAT(parsed.error().message(), testing::HasSubstr('"' + std::string(text) + '"'));
  }
}

}  // namespace
}  // namespace agbox
