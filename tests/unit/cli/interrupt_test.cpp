// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>

namespace agbox::cli {
namespace {

void wait_for_stop(const Interrupt& interrupt) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait(lock, interrupt.token(), [] { return false; });
}

TEST(InterruptTest, TheFirstSignalOnlyAsks) {
  const Interrupt interrupt;
  EXPECT_FALSE(interrupt.token().stop_requested());
  ::raise(SIGTERM);
  wait_for_stop(interrupt);
  EXPECT_EQ(interrupt.exit_code(), 143);
}

TEST(InterruptTest, ItCanBeUsedAgain) {
  for (int i = 0; i < 2; ++i) {
    const Interrupt interrupt;
    ::raise(SIGINT);
    wait_for_stop(interrupt);
    EXPECT_EQ(interrupt.exit_code(), 130);
  }
}

using InterruptDeathTest = testing::TestWithParam<std::pair<int, int>>;

TEST_P(InterruptDeathTest, TheSecondOneOfEitherKindEnds) {
  const auto end = [] {
    const Interrupt interrupt;
    ::raise(GetParam().first);
    wait_for_stop(interrupt);
    ::raise(GetParam().second);
  };
  EXPECT_EXIT(end(), testing::KilledBySignal(GetParam().second), "");
}

TEST_P(InterruptDeathTest, TheSecondOneEndsWhenBothAreHandledAtOnce) {
  const auto end = [] {
    const Interrupt interrupt;
    struct sigaction ours{};
    ::sigaction(SIGINT, nullptr, &ours);
    // As on two threads: the second is handled although the first has put the default back.
    ours.sa_handler(GetParam().first);
    ours.sa_handler(GetParam().second);
    ::pause();
  };
  EXPECT_EXIT(end(), testing::KilledBySignal(GetParam().second), "");
}

INSTANTIATE_TEST_SUITE_P(Pairs, InterruptDeathTest,
                         testing::Values(std::pair(SIGINT, SIGINT), std::pair(SIGINT, SIGTERM),
                                         std::pair(SIGTERM, SIGINT)));

TEST(InterruptTest, AWindowThatIsClosedAsksOnce) {
  const Interrupt interrupt(Interrupt::Hangup::Handled);
  ::raise(SIGHUP);
  wait_for_stop(interrupt);
  ::raise(SIGHUP);
  EXPECT_EQ(interrupt.exit_code(), 129);
}

TEST(InterruptHangupDeathTest, AfterAWindowWasClosedAnotherSignalEnds) {
  const auto end = [] {
    const Interrupt interrupt(Interrupt::Hangup::Handled);
    ::raise(SIGHUP);
    wait_for_stop(interrupt);
    ::raise(SIGTERM);
  };
  EXPECT_EXIT(end(), testing::KilledBySignal(SIGTERM), "");
}

TEST(InterruptTest, AnIgnoredSignalStaysIgnored) {
  ::signal(SIGINT, SIG_IGN);
  {
    const Interrupt interrupt;
    ::raise(SIGINT);
    ::raise(SIGTERM);
    wait_for_stop(interrupt);
    EXPECT_EQ(interrupt.exit_code(), 143);
    ::raise(SIGINT);
  }
  ::signal(SIGINT, SIG_DFL);
}

}  // namespace
}  // namespace agbox::cli
