// SPDX-License-Identifier: Apache-2.0
#include "daemon/exit_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <csignal>
#include <cstdlib>

namespace agbox {
namespace {

using namespace std::chrono_literals;

[[noreturn]] void hang() {
  while (true) ::pause();
}

// Each in its own process, because handlers and alarms are per process.
class ExitSignalsDeathTest : public testing::TestWithParam<int> {
 protected:
  ExitSignalsDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_P(ExitSignalsDeathTest, TheFirstSignalIsReportedOnce) {
  const auto story = [] {
    boost::asio::io_context io;
    ExitSignals signals(io.get_executor(), 60s);
    int reports = 0;
    signals.wait([&] { ++reports; });
    std::raise(GetParam());
    io.run();
    ::_exit(reports == 1 ? 0 : 1);
  };
  EXPECT_EXIT(story(), testing::ExitedWithCode(0), "");
}

TEST_P(ExitSignalsDeathTest, ASignalBeforeTheWaitIsReported) {
  const auto story = [] {
    boost::asio::io_context io;
    ExitSignals signals(io.get_executor(), 60s);
    std::raise(GetParam());
    signals.wait([] { ::_exit(7); });
    io.run();
  };
  EXPECT_EXIT(story(), testing::ExitedWithCode(7), "");
}

TEST_P(ExitSignalsDeathTest, AHungThreadDoesNotKeepTheProcess) {
  const auto story = [] {
    boost::asio::io_context io;
    ExitSignals signals(io.get_executor(), 1s);
    std::raise(GetParam());
    hang();
  };
  EXPECT_EXIT(story(), testing::ExitedWithCode(EXIT_FAILURE), "shutdown timed out");
}

TEST_P(ExitSignalsDeathTest, ASecondSignalKillsTheProcess) {
  const auto story = [] {
    boost::asio::io_context io;
    ExitSignals signals(io.get_executor(), 60s);
    std::raise(GetParam());
    std::raise(SIGTERM);
    hang();
  };
  EXPECT_EXIT(story(), testing::KilledBySignal(SIGTERM), "");
}

INSTANTIATE_TEST_SUITE_P(, ExitSignalsDeathTest, testing::Values(SIGTERM, SIGINT));

}  // namespace
}  // namespace agbox
