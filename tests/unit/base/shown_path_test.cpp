// SPDX-License-Identifier: Apache-2.0
#include "base/shown_path.h"

#include <gtest/gtest.h>

#include <string>

namespace agbox {
namespace {

TEST(ShownPathTest, ReadableNamesStayAsTheyAre) {
  EXPECT_EQ(shown_path("/home/ä b/x.txt"), "/home/ä b/x.txt");
}

TEST(ShownPathTest, WhatATerminalWouldObeyIsEscaped) {
  EXPECT_EQ(shown_path("a\nb\x1b[31m\x7f"), "a\\x0ab\\x1b[31m\\x7f");
  EXPECT_EQ(shown_path("a\xc2\x9b"), "a\\xc2\\x9b");  // a control character of two bytes
  EXPECT_EQ(shown_path("a\xff"), "a\\xff");
  EXPECT_EQ(shown_path("a\\x0a"), "a\\x5cx0a");  // so that no name can look like another
}

TEST(ShownPathTest, LongPathsKeepBothEnds) {
  const std::string path = "/begin/" + std::string(4000, 'x') + "/end";
  const std::string shown = shown_path(path);
  EXPECT_LT(shown.size(), 1024U);
  EXPECT_TRUE(shown.starts_with("/begin/"));
  EXPECT_TRUE(shown.ends_with("/end"));
}

}  // namespace
}  // namespace agbox
