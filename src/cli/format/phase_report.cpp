// SPDX-License-Identifier: Apache-2.0
#include "cli/format/phase_report.h"

#include "cli/format/printable.h"
#include "cli/format/sandbox_text.h"

namespace agbox::cli {

namespace {

// Every create begins with this phase, so reporting it adds nothing.
constexpr std::string_view kFirstPhase = "materialize";

}  // namespace

void PhaseReport::show(const v1::SandboxEvent& event) {
  if (event.has_companion_container()) return show_companion(event);
  const std::string& phase = event.sandbox_phase().phase();
  if (event.event_type() != v1::SANDBOX_PREPARING || phase.empty() || phase == kFirstPhase) return;
  if (console_.is_terminal()) return waiting_.show(phase);
  const BootTime now = clock_.boot_now();
  const bool is_too_soon = last_line_at_ && now - *last_line_at_ < std::chrono::seconds(1);
  if (phase == last_phase_ || is_too_soon) return;
  console_.error("  " + printable_line(phase));
  last_phase_ = phase;
  last_line_at_ = now;
}

void PhaseReport::show_companion(const v1::SandboxEvent& event) {
  const v1::CompanionContainerEventDetails& companion = event.companion_container();
  std::string line = "companion " + companion.name();
  if (event.event_type() == v1::COMPANION_CONTAINER_READY) {
    line += " is ready";
  } else if (event.event_type() == v1::COMPANION_CONTAINER_FAILED) {
    const std::string error = error_text(companion.error_code(), companion.error_message());
    line += " failed" + (error.empty() ? "" : ": " + error);
  } else {
    return;
  }
  console_.error("  " + printable_line(line));
}

}  // namespace agbox::cli
