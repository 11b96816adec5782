// SPDX-License-Identifier: Apache-2.0
#include "cli/format/elapsed.h"

#include <gtest/gtest.h>

#include "support/manual_clock.h"

namespace agbox::cli {
namespace {

using namespace std::chrono_literals;

TEST(Elapsed, SecondsHaveOneDecimal) {
  EXPECT_EQ(seconds_text(0ns), "0.0s");
  EXPECT_EQ(seconds_text(1250ms), "1.2s");
  EXPECT_EQ(seconds_text(61s), "61.0s");
}

TEST(Elapsed, AnAgeHasTheLargestUnitThatFits) {
  const WallTime now = ManualClock().wall_now() + 999ms;
  const std::pair<std::chrono::seconds, const char*> rows[] = {
      {0s, "0s"},  {59s, "59s"}, {60s, "1m"}, {3599s, "59m"},  {1h, "1h"},
      {47h, "1d"}, {23h, "23h"}, {48h, "2d"}, {9600h, "400d"}, {-5s, "0s"}};
  for (const auto& [age, text] : rows) {
    google::protobuf::Timestamp then;
    then.set_seconds(1'700'000'000 - age.count());
    EXPECT_EQ(age_text(then, now), text);
  }
}

}  // namespace
}  // namespace agbox::cli
