// SPDX-License-Identifier: Apache-2.0
#include "cli/format/phase_report.h"

#include <gtest/gtest.h>

#include "support/manual_clock.h"
#include "unit/cli/captured_console.h"

namespace agbox::cli {
namespace {

using namespace std::chrono_literals;

v1::SandboxEvent preparing(const std::string& phase) {
  v1::SandboxEvent event;
  event.set_event_type(v1::SANDBOX_PREPARING);
  event.mutable_sandbox_phase()->set_phase(phase);
  return event;
}

TEST(PhaseReport, ALinePerNewPhaseAndAtMostOnePerSecond) {
  CapturedConsole captured;
  ManualClock clock;
  PhaseReport report(captured.console(), clock, "Waiting");
  report.show(preparing("pulling: 10 %"));
  clock.advance(999ms);
  report.show(preparing("pulling: 20 %"));
  clock.advance(1ms);
  report.show(preparing("pulling: 30 %"));
  clock.advance(5s);
  report.show(preparing("pulling: 30 %"));
  report.show(preparing("pulling:\n\x1b[2J"));
  EXPECT_EQ(captured.error(), "  pulling: 10 %\n  pulling: 30 %\n  pulling: \\x1b[2J\n");
}

TEST(PhaseReport, EachCompanionThatBecameReadyOrFailedIsALineAtOnce) {
  CapturedConsole captured;
  const ManualClock clock;
  PhaseReport report(captured.console(), clock, "Waiting");
  const auto companion = [](v1::EventType type, const std::string& name, const std::string& code,
                            const std::string& message) {
    v1::SandboxEvent event;
    event.set_event_type(type);
    event.mutable_companion_container()->set_name(name);
    event.mutable_companion_container()->set_error_code(code);
    event.mutable_companion_container()->set_error_message(message);
    return event;
  };
  report.show(preparing("pulling: 10 %"));
  report.show(companion(v1::COMPANION_CONTAINER_READY, "db", "", ""));
  report.show(companion(v1::SANDBOX_SERVICE_READY, "queue", "", ""));
  report.show(companion(v1::COMPANION_CONTAINER_FAILED, "web", "WHY", "no\nimage\x1b[2J"));
  report.show(companion(v1::COMPANION_CONTAINER_FAILED, "web", "", ""));
  report.show(companion(v1::SANDBOX_PREPARING, "db", "", ""));
  EXPECT_EQ(captured.error(),
            "  pulling: 10 %\n"
            "  companion db is ready\n"
            "  companion queue is ready\n"
            "  companion web failed: WHY: no image\\x1b[2J\n"
            "  companion web failed\n");
}

TEST(PhaseReport, WhatEveryCreateHasIsNoNews) {
  CapturedConsole captured;
  const ManualClock clock;
  PhaseReport report(captured.console(), clock, "Waiting");
  report.show(preparing("materialize"));
  report.show(preparing(""));
  v1::SandboxEvent failed = preparing("x");
  failed.set_event_type(v1::SANDBOX_FAILED);
  report.show(failed);
  EXPECT_EQ(captured.error(), "");
}

}  // namespace
}  // namespace agbox::cli
