// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <gtest/gtest.h>

namespace agbox {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return fail(reason::kInvalidArgument, "odd", {{"number", "odd"}});
  return number / 2;
}

Result<int> quarter(int number) {
  AGBOX_TRY(first, half(number));
  AGBOX_TRY_VOID(half(first));
  AGBOX_TRY(second, half(first));
  return second;
}

TEST(Result, TryPropagatesTheError) {
  EXPECT_EQ(quarter(8), 2);
  ASSERT_FALSE(quarter(6).has_value());
  EXPECT_EQ(quarter(6).error(), Error(reason::kInvalidArgument, "odd", {{"number", "odd"}}));
}

TEST(Result, WithinKeepsReasonAndMetadata) {
  const Error outer = Error(reason::kUnimplemented, "gone", {{"exec_id", "e"}}).within("cancel");
  EXPECT_EQ(outer, Error(reason::kUnimplemented, "cancel: gone", {{"exec_id", "e"}}));
}

TEST(Result, ErrnoBecomesAMessage) {
  EXPECT_EQ(errno_error("open /x", ENOENT).message(), "open /x: No such file or directory");
}

}  // namespace
}  // namespace agbox
