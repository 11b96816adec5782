// SPDX-License-Identifier: Apache-2.0
#include "base/rare_line.h"

#include <gtest/gtest.h>

namespace agbox {
namespace {

using namespace std::chrono_literals;

TEST(RareLine, ReportsHowManyWereLeftOut) {
  RareLine line(10s);
  const RareLine::Clock::time_point start;
  EXPECT_EQ(line.is_due(start), 0U);
  EXPECT_EQ(line.is_due(start + 1s), std::nullopt);
  EXPECT_EQ(line.is_due(start + 9s), std::nullopt);
  EXPECT_EQ(line.is_due(start + 10s), 2U);
  EXPECT_EQ(line.is_due(start + 11s), std::nullopt);
  EXPECT_EQ(line.is_due(start + 30s), 1U);
}

}  // namespace
}  // namespace agbox
