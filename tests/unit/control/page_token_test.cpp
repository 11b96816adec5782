// SPDX-License-Identifier: Apache-2.0
#include "control/page_token.h"

#include <gtest/gtest.h>

namespace agbox {
namespace {

v1::SandboxHandle handle(std::int64_t seconds, std::int32_t nanos, const std::string& id) {
  v1::SandboxHandle made;
  made.mutable_created_at()->set_seconds(seconds);
  made.mutable_created_at()->set_nanos(nanos);
  made.set_sandbox_id(id);
  return made;
}

TEST(PageToken, OrdersNewestFirstThenById) {
  const PageToken token = PageToken::of(handle(100, 5, "mmmm"));
  EXPECT_TRUE(token.precedes(handle(99, 9, "aaaa")));
  EXPECT_TRUE(token.precedes(handle(100, 4, "aaaa")));
  EXPECT_TRUE(token.precedes(handle(100, 5, "nnnn")));
  EXPECT_FALSE(token.precedes(handle(100, 5, "mmmm")));
  EXPECT_FALSE(token.precedes(handle(100, 5, "aaaa")));
  EXPECT_FALSE(token.precedes(handle(101, 0, "zzzz")));
}

TEST(PageToken, ItsTextLeadsBackToIt) {
  const PageToken token = PageToken::of(handle(1'700'000'000, 999'999'999, "a-b_c"));
  EXPECT_EQ(PageToken::parse(token.text()).value(), token);
}

TEST(PageToken, TheEmptyOnePrecedesEverything) {
  const PageToken beginning = PageToken::parse("").value();
  EXPECT_TRUE(beginning.precedes(handle(253'402'300'799, 999'999'999, "")));
}

TEST(PageToken, WhatWeDidNotGiveOutIsRefused) {
  for (const char* text : {"a", "1", "1/", "1/2", "//", " 1/2/x", "+1/2/x", "1/99999999999/x"}) {
    EXPECT_FALSE(PageToken::parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace agbox
