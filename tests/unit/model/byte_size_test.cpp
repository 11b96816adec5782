// SPDX-License-Identifier: Apache-2.0
#include "model/byte_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agbox {
namespace {

using testing::HasSubstr;

TEST(ByteSize, IsANumberAndAUnit) {
  EXPECT_EQ(parse_byte_size("0"), 0U);
  EXPECT_EQ(parse_byte_size("0GiB"), 0U);
  EXPECT_EQ(parse_byte_size("1b"), 1U);
  EXPECT_EQ(parse_byte_size("3KiB"), 3072U);
  EXPECT_EQ(parse_byte_size("3kb"), 3000U);
  EXPECT_EQ(parse_byte_size("512MiB"), 512U << 20);
  EXPECT_EQ(parse_byte_size("4GiB"), 4ULL << 30);
  EXPECT_EQ(parse_byte_size("4GB"), 4'000'000'000U);
  EXPECT_EQ(parse_byte_size("2tib"), 2ULL << 40);
  EXPECT_EQ(parse_byte_size("18446744073709551615B"), 18446744073709551615U);
}

TEST(ByteSize, RefusesEverythingElse) {
  for (const char* text : {"", " ", "GiB", "4 GiB", "-1B", "+1B", "1.5GiB", "4G", "4GiBB", "0x10B",
                           "4GiB ", " 4GiB", "1e3B"}) {
    const auto size = parse_byte_size(text);
    ASSERT_FALSE(size.has_value()) << text;
    EXPECT_THAT(size.error().message(), HasSubstr("write for example 512MiB or 4GiB"));
  }
  EXPECT_THAT(parse_byte_size("4096").error().message(), HasSubstr("has no unit"));
  EXPECT_THAT(parse_byte_size("18446744073709551616B").error().message(), HasSubstr("too large"));
  EXPECT_THAT(parse_byte_size("17179869184GiB").error().message(), HasSubstr("too large"));
}

}  // namespace
}  // namespace agbox
