// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/crash_window.h"

#include <gtest/gtest.h>

namespace agbox {
namespace {

using namespace std::chrono_literals;

TEST(CrashWindowTest, WaitsTwiceAsLongEachTimeUpToAMinute) {
  CrashWindow window;
  BootTime now = 0s;
  for (const auto expected : {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms, 12800ms, 25600ms,
                              51200ms, 60000ms, 60000ms, 60000ms}) {
    EXPECT_EQ(window.ended(now), expected);
    now += expected;
    window.started(now);  // and it ends at once
  }
}

TEST(CrashWindowTest, AnEndLaterThanFiveMinutesAfterTheFirstIsTheLast) {
  CrashWindow window;
  for (int end = 0; end < CrashWindow::kEndsForgiven; ++end) {
    EXPECT_TRUE(window.ended(7s).has_value());
  }
  EXPECT_TRUE(window.ended(7s + 5min).has_value());
  EXPECT_FALSE(window.ended(7s + 5min + 1ns).has_value());
}

// The engine was away, or the machine slept: hardly anything was tried.
TEST(CrashWindowTest, TimeAloneEndsNoSeries) {
  CrashWindow window;
  for (int end = 0; end < CrashWindow::kEndsForgiven; ++end) {
    EXPECT_TRUE(window.ended(end * 10min).has_value());
  }
  EXPECT_FALSE(window.ended(CrashWindow::kEndsForgiven * 10min).has_value());
}

TEST(CrashWindowTest, AContainerThatEndsAtOnceIsGivenUpWithinSevenMinutes) {
  CrashWindow window;
  BootTime now = 0s;
  int starts = 0;
  while (const auto wait = window.ended(now)) {
    now += *wait;
    window.started(now);
    now += 29s;  // the longest run that is too short
    ++starts;
  }
  EXPECT_GT(now, 5min);
  EXPECT_LE(now, 5min + 60s + 29s);
  EXPECT_GT(starts, 5);
}

TEST(CrashWindowTest, ARunOfThirtySecondsEndsTheSeries) {
  CrashWindow window;
  EXPECT_EQ(window.ended(0s), 100ms);
  window.started(1s);
  EXPECT_EQ(window.ended(31s - 1ns), 200ms);
  window.started(40s);
  EXPECT_EQ(window.ended(70s), 100ms);
}

TEST(CrashWindowTest, AContainerThatRunsFortySecondsAtATimeIsStartedForEver) {
  CrashWindow window;
  BootTime now = 0s;
  for (int run = 0; run < 1000; ++run) {
    window.started(now);
    now += 40s;
    ASSERT_EQ(window.ended(now), 100ms);
  }
}

TEST(CrashWindowTest, AStartThatFailedIsNoRun) {
  CrashWindow window;
  window.started(0s);
  EXPECT_EQ(window.ended(40s), 100ms);
  EXPECT_EQ(window.ended(41s), 200ms);   // nothing was started in between
  EXPECT_EQ(window.ended(300s), 400ms);  // however long that took
}

// L16: what was before a stop says nothing about what is after the resume.
TEST(CrashWindowTest, AResetForgetsEverything) {
  CrashWindow window;
  EXPECT_EQ(window.ended(0s), 100ms);
  EXPECT_EQ(window.ended(1s), 200ms);
  window.reset();
  EXPECT_EQ(window.ended(10min), 100ms);
}

}  // namespace
}  // namespace agbox
