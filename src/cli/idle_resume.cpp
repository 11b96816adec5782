// SPDX-License-Identifier: Apache-2.0
#include "cli/idle_resume.h"

#include <agbox/sandbox_wait.h>

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "cli/daemon_client.h"
#include "cli/wait_report.h"

namespace agbox::cli {

namespace {

constexpr const char* kIdle = "idle_ttl";

// The stop is the last event or, with companions, one of the last.
constexpr std::uint64_t kReadEvents = 16;

// Why it was stopped most recently.
sdk::Result<std::string> stop_reason(const sdk::RawClient& client, const v1::SandboxHandle& sandbox,
                                     const Interrupt& interrupt) {
  const std::uint64_t last = sandbox.last_event_sequence();
  sdk::EventFollower events(client, sandbox.sandbox_id(), last - std::min(last, kReadEvents),
                            {.stop = interrupt.token()});
  std::string reason;
  while (true) {
    const auto event = events.next();
    if (!event) return std::unexpected(event.error());
    if (event->event_type() == v1::SANDBOX_STOPPED) reason = event->sandbox_phase().reason();
    if (event->sequence() >= last) return reason;
  }
}

}  // namespace

bool resume_if_idle(Console& console, const sdk::RawClient& client,
                    const v1::SandboxHandle& sandbox, const Interrupt& interrupt) {
  if (sandbox.state() != v1::SANDBOX_STATE_STOPPED) return true;
  const auto reason = stop_reason(client, sandbox, interrupt);
  if (!reason) {
    fail_call(console, "resume sandbox", reason.error());
    return false;
  }
  if (*reason != kIdle) return true;
  const std::string& id = sandbox.sandbox_id();
  console.error("Sandbox " + id + " was stopped because it was idle: resuming it.");
  v1::ResumeSandboxRequest request;
  request.set_sandbox_id(id);
  const auto accepted = client.resume_sandbox(request, kNoTimeout);
  // Another client may have resumed it since.
  if (!accepted && accepted.error().kind != sdk::ErrorKind::SandboxInvalidState) {
    fail_call(console, "resume sandbox", accepted.error());
    return false;
  }
  const SystemClock clock;
  const WaitReport report(console, clock, "Waiting for sandbox " + id + " to be resumed");
  const auto ready = sdk::wait_for_sandbox(client, id, sdk::SandboxGoal::Resumed,
                                           {.follow = {.stop = interrupt.token()}});
  if (ready) return true;
  if (ready.error().kind == sdk::ErrorKind::Cancelled) {
    console.error("Stopped waiting; the daemon continues the resume.");
  } else {
    fail_call(console, "resume sandbox", ready.error());
  }
  return false;
}

}  // namespace agbox::cli
