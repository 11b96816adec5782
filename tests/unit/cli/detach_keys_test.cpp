// SPDX-License-Identifier: Apache-2.0
#include "cli/detach_keys.h"

#include <gtest/gtest.h>

namespace agbox::cli {
namespace {

TEST(DetachKeys, AreFoundAlsoInSeveralReads) {
  DetachKeys keys = DetachKeys::parse("ctrl-p,ctrl-q").value();
  EXPECT_EQ(keys.feed("ls\x10").bytes, "ls");
  const auto typed = keys.feed("\x11");
  EXPECT_TRUE(typed.is_detach);
  EXPECT_EQ(typed.bytes, "");
}

TEST(DetachKeys, ABeginningOfThemIsPassedOnWithTheNextKey) {
  DetachKeys keys = DetachKeys::parse("ctrl-p,ctrl-q").value();
  EXPECT_EQ(keys.feed("\x10").bytes, "");
  EXPECT_EQ(keys.feed("x").bytes, "\x10x");
  EXPECT_EQ(keys.feed("\x10\x10").bytes, "\x10");
  EXPECT_TRUE(keys.feed("\x11").is_detach);
}

TEST(DetachKeys, MayBeOthersOrNone) {
  EXPECT_TRUE(DetachKeys::parse("a").value().feed("ba").is_detach);
  EXPECT_TRUE(DetachKeys::parse("ctrl-@,ctrl-_").value().feed(std::string("\0\x1f", 2)).is_detach);
  DetachKeys none = DetachKeys::parse("").value();
  EXPECT_EQ(none.feed("\x10\x11").bytes, "\x10\x11");
  for (const char* wrong : {"ctrl", "ctrl-", "ctrl-1", "ctrl-pq", "alt-a", ",,"}) {
    EXPECT_FALSE(DetachKeys::parse(wrong).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace agbox::cli
