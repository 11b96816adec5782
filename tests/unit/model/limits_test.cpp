// SPDX-License-Identifier: Apache-2.0
#include "model/spec/limits.h"

#include <gtest/gtest.h>

namespace agbox {
namespace {

TEST(CpuLimit, ReadsNumbersAsDockerUsersWriteThem) {
  const std::pair<std::string_view, std::int64_t> rows[] = {
      {"2", 2000},      {"0.5", 500},       {"+1.5", 1500},   {"1e-1", 100}, {"0x1p-1", 500},
      {"1_0.5", 10500}, {"0.001", 1},       {".25", 250},     {"2.", 2000},  {"0.0019", 1},
      {"0x_1p2", 4000}, {"0X1_0P-1_0", 15}, {"1e0_1", 10000},
  };
  for (const auto& [text, millicores] : rows) {
    const auto limit = CpuLimit::parse(text);
    ASSERT_TRUE(limit.has_value()) << text;
    EXPECT_EQ(limit->millicores(), millicores) << text;
  }
}

TEST(CpuLimit, SaysWhatIsWrong) {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"0", "must be > 0"},
      {"-1", "must be > 0"},
      {"inf", "must be a finite number"},
      {"NaN", "must be a finite number"},
      {"0.0001", "must resolve to at least 1 millicore (0.001)"},
      {"1e300", "must be at most 1000000000 CPUs"},
  };
  for (const auto& [text, why] : rows) {
    const auto limit = CpuLimit::parse(text);
    ASSERT_FALSE(limit.has_value()) << text;
    EXPECT_EQ(limit.error().message(), why) << text;
  }
  for (const char* text :
       {"two", "", " 2", "2 ", "1_", "_1", "1__0", "0x1", "--1", "+-1", "1,5", "0x", "0x_p1",
        "0x__1p2", "0x_.8p1", "0x1_p2", "0x1p_2", "0_x1p2", "_0x1p2"}) {
    EXPECT_FALSE(CpuLimit::parse(text).has_value()) << text;
  }
}

TEST(ByteLimit, UnitsArePowersOf1024InAnyCase) {
  const std::pair<std::string_view, std::int64_t> rows[] = {
      {"10737418240", 10737418240}, {"1b", 1},          {"1k", 1024},
      {"512m", 536870912},          {"4g", 4294967296}, {"1.5GiB", 1610612736},
      {"10 MB", 10485760},          {"10 ", 10},        {"1T", 1099511627776},
      {"1pib", 1125899906842624},   {"0.5k", 512},      {"1.0001k", 1024},
  };
  for (const auto& [text, bytes] : rows) {
    const auto limit = ByteLimit::parse(text);
    ASSERT_TRUE(limit.has_value()) << text;
    EXPECT_EQ(limit->bytes(), bytes) << text;
  }
}

TEST(ByteLimit, SaysWhatIsWrong) {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"g", "invalid size: 'g'"},
      {"", "invalid size: ''"},
      {"-1g", "invalid size: '-1g'"},
      {"1x", "invalid suffix: 'x'"},
      {"1kbb", "invalid suffix: 'kbb'"},
      {"1bk", "invalid suffix: 'bk'"},
      {"0", "must be > 0"},
      {"0.1", "must be > 0"},
      {"8192p", "must be below 8 EiB"},
  };
  for (const auto& [text, why] : rows) {
    const auto limit = ByteLimit::parse(text);
    ASSERT_FALSE(limit.has_value()) << text;
    EXPECT_EQ(limit.error().message(), why) << text;
  }
}

}  // namespace
}  // namespace agbox
