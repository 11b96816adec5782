// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace agbox {
namespace {

TEST(ToUtf8, ReplacesOnlyWhatIsNotUtf8) {
  EXPECT_EQ(to_utf8("é €\xF0\x9F\x98\x80\n"), "é €\xF0\x9F\x98\x80\n");
  EXPECT_EQ(to_utf8("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(to_utf8("\xC3"), "\xEF\xBF\xBD");
  EXPECT_EQ(to_utf8(""), "");
}

TEST(Utf8Prefix, NeverCutsACharacter) {
  EXPECT_EQ(utf8_prefix("abc", 3), "abc");
  EXPECT_EQ(utf8_prefix("abc", 2), "ab");
  EXPECT_EQ(utf8_prefix("a€", 4), "a€");
  EXPECT_EQ(utf8_prefix("a€", 3), "a");
  EXPECT_EQ(utf8_prefix("a€", 2), "a");
  EXPECT_EQ(utf8_prefix("€", 2), "");
}

}  // namespace
}  // namespace agbox
