// SPDX-License-Identifier: Apache-2.0
// Is every running sandbox isolated, verified again now?
#pragma once

#include <chrono>
#include <cstddef>

#include "async/cancellation.h"
#include "control/doctor/check_context.h"

namespace agbox {

struct IsolationCheck {
  static constexpr std::string_view kName = "isolation";
  // Of all sandboxes together: one whose guest does not respond takes seven seconds.
  static constexpr std::chrono::seconds kDeadline{20};

  struct Problem {
    std::string sandbox_id;
    std::string why;
  };
  std::size_t verified = 0;
  std::vector<Problem> failed{};
  std::vector<Problem> paused{};
  std::vector<Problem> unreachable{};  // the guest did not respond; the rest was verified
  std::vector<Problem> unverified{};   // the same, and for too long
  std::size_t skipped = 0;             // no time was left

  static asio::awaitable<IsolationCheck> gather(const CheckContext& context) {
    const ActorServices& services = context.services;
    const std::vector<std::string> live = context.directory.live_sandboxes();
    IsolationCheck check{.skipped = live.size()};
    const BootTime end = services.clock.boot_now() + kDeadline;
    for (const std::string& id : live) {
      if (services.clock.boot_now() > end || co_await is_cancelled()) break;
      --check.skipped;
      SandboxPlace* const place = context.directory.place_of(id);
      if (place == nullptr) continue;  // purged concurrently
      // This verification may end the pause.
      const SandboxIsolation::Problem* known = services.isolation.problem_of(id);
      const bool is_paused = known != nullptr && known->paused != IsolationState::Paused::No;
      const std::string pause = is_paused ? known->why : "";
      const auto attempt = co_await services.isolation.verify_live(id, *place);
      if (attempt.outcome) {
        ++check.verified;
      } else if (context.directory.is_live(id)) {  // not stopped concurrently
        if (!pause.empty()) {
          check.paused.push_back({.sandbox_id = id, .why = pause});
          continue;
        }
        const SandboxIsolation::Problem* now = services.isolation.problem_of(id);
        if (attempt.is_unknown && now != nullptr && now->is_unverified) {
          check.unverified.push_back({.sandbox_id = id, .why = now->why});
          continue;
        }
        auto& problems = attempt.is_unknown ? check.unreachable : check.failed;
        problems.push_back({.sandbox_id = id, .why = attempt.outcome.error().message()});
      }
    }
    co_return check;
  }

  void judge(Findings& findings) const {
    for (const Problem& sandbox : failed) {
      findings.broken("sandbox " + sandbox.sandbox_id + ": " + sandbox.why,
                      "agbox sandbox stop " + sandbox.sandbox_id +
                          ", and resume it when the firewall is in place");
    }
    for (const Problem& sandbox : paused) {
      findings.broken("sandbox " + sandbox.sandbox_id + " is paused: " + sandbox.why,
                      "remove what is in the way, and agboxd unpauses it; or: agbox sandbox stop " +
                          sandbox.sandbox_id);
    }
    for (const Problem& sandbox : unverified) {
      findings.broken("sandbox " + sandbox.sandbox_id + ": " + sandbox.why,
                      "if it lasts: agbox sandbox stop " + sandbox.sandbox_id +
                          ", and agbox sandbox resume " + sandbox.sandbox_id);
    }
    for (const Problem& sandbox : unreachable) {
      findings.unknown(
          "sandbox " + sandbox.sandbox_id +
          ": its rules are in place, but could not be tested from inside: " + sandbox.why);
    }
    if (skipped > 0) {
      findings.unknown(counted(skipped, "running sandbox was", "running sandboxes were") +
                       " not checked, because those before took too long");
    }
    if (verified > 0 && failed.empty() && paused.empty() && unverified.empty()) {
      findings.ok("verified now for " + counted(verified, "running sandbox", "running sandboxes"));
    }
    if (findings.empty()) findings.ok("no sandbox is running");
  }
};

}  // namespace agbox
