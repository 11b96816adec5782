// SPDX-License-Identifier: Apache-2.0
// The part of a sandbox's execs that talks to the guest: what is sent, what is received, and how
// both sides reconcile after a lost connection.
#include <chrono>
#include <set>
#include <utility>

#include "base/failpoint.h"
#include "control/companion/companion_guest.h"
#include "control/exec/exec_environment.h"
#include "control/exec/sandbox_execs.h"
#include "guestwire/place.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using guestwire::kWorkspace;

constexpr auto kCancelGrace = 2s;

}  // namespace

// --- to the guest ---

std::string SandboxExecs::guest_too_old(const std::string& sandbox_id) {
  return "sandbox " + sandbox_id +
         " was created by an older release, which knows neither the user nor the input of an exec; "
         "create a new sandbox for it";
}

asio::awaitable<void> SandboxExecs::send(std::string exec_id) {
  RunningExec* exec = find(exec_id);
  if (exec == nullptr || std::exchange(exec->is_opening, true)) co_return;
  SandboxPlace& place = place_of(*exec);
  ++opening_;
  const auto opened = co_await place.open_output(exec_id, exec->record);
  --opening_;
  // It may have ended meanwhile, and a request for another exec with its ID be under way.
  exec = find(exec_id);
  const bool is_same = exec != nullptr && std::exchange(exec->is_opening, false);
  if (is_same && !exec->is_ending) {
    if (opened) {
      give_to_guest(exec_id);
    } else {
      end(exec_id, unstarted_outcome(opened.error().message()));
    }
  }
  place.close_output(exec_id);  // opened again for an exec that waits for the guest
}

std::vector<std::string> SandboxExecs::environment_of(
    const CompanionGuest* guest,
    const google::protobuf::Map<std::string, std::string>& overrides) const {
  return exec_environment(guest == nullptr ? facts_.spec.create_spec.envs() : guest->envs(),
                          overrides);
}

void SandboxExecs::give_to_guest(const std::string& exec_id) {
  if (journal_.status().state == v1::SANDBOX_STATE_FAILED) {
    return end_unstarted(exec_id,
                         unstarted_outcome("the sandbox failed before the command could start"));
  }
  // The sandbox is being stopped or deleted; even if that fails, the exec is never sent to a guest.
  if (journal_.status().state != v1::SANDBOX_STATE_READY) return end(exec_id, cancelled_outcome());
  // While its files were opened.
  if (find(exec_id)->shown->record.cancel_requested()) return end(exec_id, cancelled_outcome());
  CompanionGuest* const guest = find(exec_id)->guest;
  SandboxPlace& place = place_of(guest);
  if (is_held(*find(exec_id))) return wait_for_restart(*find(exec_id));
  if (!is_reachable(guest)) {  // sent when it is
    if (guest != nullptr) guest->summon();
    return;
  }
  if (AGBOX_FAILPOINT_FAILS("exec.send.before")) return;
  const v1::CreateExecRequest& request = find(exec_id)->shown->request;
  if (needs_current_guest(request) && !place.guest_is_current()) {
    return end_unstarted(exec_id, unstarted_outcome(guest_too_old(journal_.sandbox_id())));
  }
  std::vector<std::string> environment = environment_of(guest, request.env_overrides());
  if (request.has_terminal()) environment.insert(environment.begin(), "TERM=" + term_of(request));
  const std::string image_directory;  // the guest of a companion knows it
  const std::string otherwise = guest == nullptr ? std::string(kWorkspace) : image_directory;
  const ExecOrder order{.exec_id = exec_id,
                        .command = {request.command().begin(), request.command().end()},
                        .working_directory = request.cwd().empty() ? otherwise : request.cwd(),
                        .environment = std::move(environment),
                        .output_limit_bytes = facts_.created_with.exec_output_max_bytes(),
                        .user = request.user(),
                        .has_input = has_input(request),
                        .terminal = terminal_of(request)};
  const auto sent = place.start_exec(order);
  find(exec_id)->may_run = find(exec_id)->may_run || sent.has_value();
  changed_.notify();
  if (!sent) {
    log_.warn("exec waits for the guest to come back",
              {{"exec_id", exec_id}, {"error", sent.error().message()}});
  }
  AGBOX_FAILPOINT("exec.send.after");
}

void SandboxExecs::send_cancel(const std::string& exec_id) {
  const RunningExec& exec = *find(exec_id);
  if (is_held(exec)) return end(exec_id, cancelled_outcome());  // it never ran, and never will
  if (!is_reachable(exec.guest)) return;
  if (AGBOX_FAILPOINT_FAILS("exec.cancel_send.before")) return;
  const auto sent = place_of(exec).cancel_exec(exec_id, kCancelGrace);
  if (!sent) {
    log_.warn("cancel waits for the guest to come back",
              {{"exec_id", exec_id}, {"error", sent.error().message()}});
  } else if (exec.guest != nullptr) {
    exec.guest->expect_end(exec_id);
  }
  AGBOX_FAILPOINT("exec.cancel_send.after");
}

// If it fails, the guest reports the end again on its next connect, and gets ForgetExec then.
void SandboxExecs::forget(const std::string& exec_id, const CompanionGuest* guest) {
  if (AGBOX_FAILPOINT_FAILS("exec.forget.before")) return;
  SandboxPlace& place = place_of(guest);
  if (!place.is_connected()) return;
  const auto sent = place.forget_exec(exec_id);
  if (!sent) {
    log_.debug("exec is forgotten later",
               {{"exec_id", exec_id}, {"error", sent.error().message()}});
  }
  AGBOX_FAILPOINT("exec.forget.after");
}

// --- from the guest ---

// Reconciles the two lists: what only we know is sent to the guest; what only the guest knows has
// ended and is on disk.
void SandboxExecs::guest_connected(const GuestHello& hello, CompanionGuest* guest) {
  const std::set<std::string_view> known(hello.execs.begin(), hello.execs.end());
  for (const std::string& exec_id : hello.execs) {
    const RunningExec* exec = find(exec_id, guest);
    if (exec == nullptr || !exec->shown) forget(exec_id, guest);
  }
  std::vector<std::string> ours;
  for (const auto& [exec_id, exec] : execs_) {
    if (exec.guest == guest && exec.shown && !exec.is_ending) ours.push_back(exec_id);
  }
  for (const std::string& exec_id : ours) {
    const bool is_cancelled = find(exec_id)->shown->record.cancel_requested();
    if (known.contains(exec_id)) {
      if (is_cancelled) send_cancel(exec_id);
    } else if (is_cancelled) {
      end(exec_id, cancelled_outcome());  // it never ran, and never will
    } else {
      services_.tasks.spawn("exec " + exec_id, send(exec_id));
    }
  }
  changed_.notify();
}

SandboxExecs::RunningExec* SandboxExecs::find(std::string_view exec_id,
                                              const CompanionGuest* guest) {
  RunningExec* const exec = find(exec_id);
  return exec != nullptr && exec->guest == guest ? exec : nullptr;
}

void SandboxExecs::guest_ended(const ExecEnd& ended, const CompanionGuest* guest) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  RunningExec* exec = find(ended.exec_id, guest);
  if (exec == nullptr || !exec->shown) return forget(ended.exec_id, guest);
  if (exec->is_ending) return;
  if (AGBOX_FAILPOINT_FAILS("exec.end.before")) return;
  store::v1::Exec& record = exec->record;
  record.set_output_truncated(record.output_truncated() || ended.output_truncated);
  record.mutable_usage()->set_user_cpu_microseconds(ended.user_cpu_microseconds);
  record.mutable_usage()->set_system_cpu_microseconds(ended.system_cpu_microseconds);
  record.mutable_usage()->set_peak_memory_bytes(ended.peak_memory_bytes);
  end(ended.exec_id, outcome_of(ended, record.cancel_requested()));
}

void SandboxExecs::guest_not_reached(const std::string& exec_id, const std::string& why,
                                     const CompanionGuest* guest) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  const RunningExec* exec = find(exec_id, guest);
  if (exec == nullptr || !exec->shown || exec->is_ending) return;
  end_unstarted(exec_id,
                exec->record.cancel_requested() ? cancelled_outcome() : unstarted_outcome(why));
}

void SandboxExecs::guest_truncated(const std::string& exec_id, const CompanionGuest* guest) {
  RunningExec* exec = find(exec_id, guest);
  if (exec == nullptr || !exec->shown || exec->is_ending || exec->record.output_truncated()) return;
  exec->record.set_output_truncated(true);
  log_.warn("output of an exec is dropped from here on", {{"exec_id", exec_id}});
  store_record(exec_id, *exec);
}

}  // namespace agbox
