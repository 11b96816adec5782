// SPDX-License-Identifier: Apache-2.0
// What a sandbox is waiting for while it is prepared, such as a pull: on a terminal one line that
// is rewritten, elsewhere a line per new phase and at most one per second.
#pragma once

#include <agbox/v1/event.pb.h>

#include <optional>
#include <string>

#include "base/clock.h"
#include "cli/console.h"

namespace agbox::cli {

class PhaseReport {
 public:
  PhaseReport(Console& console, const Clock& clock) : console_(console), clock_(clock) {}

  void show(const v1::SandboxEvent& event);

 private:
  Console& console_;
  const Clock& clock_;
  std::string last_phase_;
  std::optional<BootTime> last_line_at_;
};

}  // namespace agbox::cli
