// SPDX-License-Identifier: Apache-2.0
// Reports the progress of a sandbox that is being created: what is waited for and an image pull on
// a terminal as one line that is rewritten, else a pull as one line per phase and at most one per
// second; each companion that became ready or failed as a line that stays.
#pragma once

#include <agbox/v1/event.pb.h>

#include <optional>
#include <string>

#include "base/clock.h"
#include "cli/console.h"
#include "cli/wait_report.h"

namespace agbox::cli {

class PhaseReport {
 public:
  // `what` is waited for: "Waiting for sandbox box-1 to be ready".
  PhaseReport(Console& console, const Clock& clock, const std::string& what)
      : console_(console), clock_(clock), waiting_(console, clock, what) {}

  void show(const v1::SandboxEvent& event);

 private:
  void show_companion(const v1::SandboxEvent& event);

  Console& console_;
  const Clock& clock_;
  WaitReport waiting_;
  std::string last_phase_;
  std::optional<BootTime> last_line_at_;
};

}  // namespace agbox::cli
