// SPDX-License-Identifier: Apache-2.0
#include "guest/runner_channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

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
  send_order(guest_.get(), {.kind = RunnerOrder::Kind::Cancel});
  report_end(1);
  RunnerReport report;
  ASSERT_EQ(receive_report(guest_.get(), report), Received::Packet);
  EXPECT_EQ(report.end.code(), 1);
  EXPECT_EQ(receive_report(guest_.get(), report), Received::Closed);
}

TEST_F(RunnerChannelTest, ASilentRunnersEndIsClosed) {
  send_order(guest_.get(), {.kind = RunnerOrder::Kind::Cancel});
  runner_.reset();
  RunnerReport report;
  EXPECT_EQ(receive_report(guest_.get(), report), Received::Closed);
}

TEST_F(RunnerChannelTest, ARunnerReceivesOrdersAndTheGuestsEnd) {
  RunnerOrder order;
  EXPECT_EQ(receive_order(runner_.get(), order), Received::NothingYet);
  EXPECT_EQ(send_order(guest_.get(), {.kind = RunnerOrder::Kind::Resize, .size = {30, 90}}), 0);
  EXPECT_EQ(send_order(guest_.get(), {.kind = RunnerOrder::Kind::Cancel}), 0);
  ASSERT_EQ(receive_order(runner_.get(), order), Received::Packet);
  EXPECT_EQ(order.kind, RunnerOrder::Kind::Resize);
  EXPECT_EQ(order.size.rows, 30);
  EXPECT_EQ(order.size.columns, 90);
  ASSERT_EQ(receive_order(runner_.get(), order), Received::Packet);
  EXPECT_EQ(order.kind, RunnerOrder::Kind::Cancel);
  guest_.reset();
  EXPECT_EQ(receive_order(runner_.get(), order), Received::Closed);
}

TEST_F(RunnerChannelTest, APipeArrivesWithItsOrder) {
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd writing(ends[1]);
  RunnerOrder sent{.kind = RunnerOrder::Kind::AttachInput, .number = 7};
  sent.pipe.reset(ends[0]);
  ASSERT_EQ(send_order(guest_.get(), sent), 0);
  ASSERT_EQ(::write(writing.get(), "x", 1), 1);
  RunnerOrder order;
  ASSERT_EQ(receive_order(runner_.get(), order), Received::Packet);
  EXPECT_EQ(order.number, 7U);
  char byte = 0;
  EXPECT_EQ(::read(order.pipe.get(), &byte, 1), 1);
}

// Root in the container has stopped it: the guest never blocks, and the cancel still fits.
TEST_F(RunnerChannelTest, ARunnerThatDoesNotReadGetsNoMoreOrdersButACancel) {
  int sent = 0;
  while (send_order(guest_.get(), {.kind = RunnerOrder::Kind::Resize, .size = {1, 1}}) == 0) {
    ASSERT_LT(++sent, 10'000);
  }
  EXPECT_GT(sent, 16);
  send_order(guest_.get(), {.kind = RunnerOrder::Kind::Cancel});
  RunnerOrder order;
  for (int i = 0; i < sent; ++i) ASSERT_EQ(receive_order(runner_.get(), order), Received::Packet);
  ASSERT_EQ(receive_order(runner_.get(), order), Received::Packet);
  EXPECT_EQ(order.kind, RunnerOrder::Kind::Cancel);
}

}  // namespace
}  // namespace agbox::guest
