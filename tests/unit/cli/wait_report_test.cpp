// SPDX-License-Identifier: Apache-2.0
#include "cli/wait_report.h"

#include <gtest/gtest.h>

#include "support/manual_clock.h"
#include "unit/cli/captured_console.h"
#include "unit/cli/captured_terminal.h"

namespace agbox::cli {
namespace {

using namespace std::chrono_literals;

TEST(WaitReport, WithoutATerminalItIsSilent) {
  CapturedConsole captured;
  const ManualClock clock;
  {
    WaitReport report(captured.console(), clock, "Waiting");
    report.show("pulling");
  }
  EXPECT_EQ(captured.error(), "");
}

TEST(WaitReport, ATerminalShowsWhatHappensAndForHowLong) {
  const CapturedTerminal terminal(80);
  Console console(terminal.fd(), terminal.fd());
  ManualClock clock;
  {
    WaitReport report(console, clock, "Waiting");
    clock.advance(1500ms);
    report.show("pulling");
    terminal.expect("\r\x1b[Kpulling 1.5s");
  }
  terminal.expect("\r\x1b[K");
}

TEST(WaitReport, ATerminalIsNotSilentForMoreThanTwoSeconds) {
  const CapturedTerminal terminal(80);
  Console console(terminal.fd(), terminal.fd());
  ManualClock clock;
  const WaitReport report(console, clock, "Waiting");
  clock.advance(2s);
  terminal.expect("\r\x1b[KWaiting 2.0s");
}

}  // namespace
}  // namespace agbox::cli
