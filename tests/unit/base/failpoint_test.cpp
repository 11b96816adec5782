// SPDX-License-Identifier: Apache-2.0
#include "base/failpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agbox {
namespace {

class FailpointTest : public testing::Test {
 protected:
  ~FailpointTest() override {
    failpoint::arm("");
    failpoint::record_passages(false);
  }
};

TEST_F(FailpointTest, AnUnarmedFailpointDoesNothing) {
  AGBOX_FAILPOINT("somewhere");
  EXPECT_FALSE(AGBOX_FAILPOINT_FAILS("somewhere"));
}

TEST_F(FailpointTest, FailsFromTheGivenPassageOn) {
  ASSERT_TRUE(failpoint::arm("here=error@3;there=error"));
  EXPECT_FALSE(AGBOX_FAILPOINT_FAILS("here"));
  EXPECT_FALSE(AGBOX_FAILPOINT_FAILS("here"));
  EXPECT_TRUE(AGBOX_FAILPOINT_FAILS("here"));
  EXPECT_TRUE(AGBOX_FAILPOINT_FAILS("here"));
  EXPECT_TRUE(AGBOX_FAILPOINT_FAILS("there"));
  EXPECT_FALSE(AGBOX_FAILPOINT_FAILS("elsewhere"));
}

TEST_F(FailpointTest, ASyntaxErrorChangesNothing) {
  ASSERT_TRUE(failpoint::arm("here=error"));
  for (const char* bad : {"here", "=error", "here=explode", "here=error@0", "here=error@x",
                          "here=error@1x", "ok=kill;here="}) {
    EXPECT_FALSE(failpoint::arm(bad)) << bad;
  }
  EXPECT_TRUE(AGBOX_FAILPOINT_FAILS("here"));
}

TEST_F(FailpointTest, ListsArmedFailpoints) {
  EXPECT_THAT(failpoint::armed(), testing::IsEmpty());
  ASSERT_TRUE(failpoint::arm("there=error;here=hold@7"));
  EXPECT_THAT(failpoint::armed(), testing::ElementsAre("here", "there"));
}

TEST_F(FailpointTest, KillEndsTheProcessImmediately) {
  EXPECT_EXIT(
      {
        failpoint::arm("here=kill@2");
        AGBOX_FAILPOINT("here");
        AGBOX_FAILPOINT("here");
      },
      testing::KilledBySignal(SIGKILL), "");
}

TEST_F(FailpointTest, RecordsWhatWasPassed) {
  failpoint::record_passages(true);
  AGBOX_FAILPOINT("first");
  AGBOX_FAILPOINT("second");
  AGBOX_FAILPOINT("first");
  EXPECT_THAT(failpoint::recorded_passages(), testing::ElementsAre("first", "second"));
}

}  // namespace
}  // namespace agbox
