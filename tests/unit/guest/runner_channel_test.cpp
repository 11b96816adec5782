// SPDX-License-Identifier: Apache-2.0
#include "guest/runner_channel.h"

#include <gtest/gtest.h>

namespace agbox::guest {
namespace {

class RunnerChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    auto channel = make_runner_channel();
    ASSERT_TRUE(channel) << channel.error().message();
    guest_ = std::move(channel->first);
    runner_ = std::move(channel->second);
  }

  void report_end(int code) {
    RunnerReport report{.kind = RunnerReport::Kind::Ended, .end = {}};
    report.end.set_code(code);
    send_report(runner_.get(), report);
    runner_.reset();
  }

  UniqueFd guest_;
  UniqueFd runner_;
};

TEST_F(RunnerChannelTest, ReportsArriveUntilTheRunnerEnds) {
  RunnerReport report;
  EXPECT_EQ(receive_report(guest_.get(), report), Received::NothingYet);
  report_end(3);
  ASSERT_EQ(receive_report(guest_.get(), report), Received::Packet);
  EXPECT_EQ(report.kind, RunnerReport::Kind::Ended);
  EXPECT_EQ(report.end.code(), 3);
  EXPECT_EQ(receive_report(guest_.get(), report), Received::Closed);
}

// The command has ended, and the cancel is never read.
TEST_F(RunnerChannelTest, ALateCancelDoesNotHideTheEnd) {
  send_cancel(guest_.get());
  report_end(1);
  RunnerReport report;
  ASSERT_EQ(receive_report(guest_.get(), report), Received::Packet);
  EXPECT_EQ(report.end.code(), 1);
  EXPECT_EQ(receive_report(guest_.get(), report), Received::Closed);
}

TEST_F(RunnerChannelTest, ASilentRunnersEndIsClosed) {
  send_cancel(guest_.get());
  runner_.reset();
  RunnerReport report;
  EXPECT_EQ(receive_report(guest_.get(), report), Received::Closed);
}

TEST_F(RunnerChannelTest, ARunnerReceivesTheCancelAndTheGuestsEnd) {
  EXPECT_EQ(receive_cancel(runner_.get()), Received::NothingYet);
  send_cancel(guest_.get());
  EXPECT_EQ(receive_cancel(runner_.get()), Received::Packet);
  guest_.reset();
  EXPECT_EQ(receive_cancel(runner_.get()), Received::Closed);
}

}  // namespace
}  // namespace agbox::guest
