// SPDX-License-Identifier: Apache-2.0
#include "model/ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agbox {
namespace {

TEST(Ids, LettersDigitsHyphensAndUnderscoresBetweenFourAndTwoHundred) {
  for (const std::string& id :
       {std::string("abcd"), std::string("A--9"), std::string("a_-b"), std::string(200, 'x')}) {
    EXPECT_TRUE(check_id("sandbox_id", id).has_value()) << id;
  }
}

TEST(Ids, TheMessageNamesTheFieldAndTheRule) {
  EXPECT_EQ(check_id("exec_id", "abc").error().message(), "exec_id must be at least 4 characters");
  for (const std::string& id :
       {std::string("-abc"), std::string("abc-"), std::string("_abc"), std::string("ab c"),
        std::string("ab.c"), std::string("ab/c"), std::string("abc\n"), std::string("abc\0d", 5),
        std::string("äbcd"), std::string(201, 'x')}) {
    const auto checked = check_id("sandbox_id", id);
    ASSERT_FALSE(checked.has_value()) << id;
    EXPECT_THAT(checked.error().message(), testing::StartsWith("sandbox_id must be 4-200"));
  }
}

}  // namespace
}  // namespace agbox
