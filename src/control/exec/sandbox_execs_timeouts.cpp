// SPDX-License-Identifier: Apache-2.0
// The part of a sandbox's execs that ends those that take longer than their timeout. It counts from
// the acceptance, which is stored on both clocks, so that a later daemon continues to count; what
// passed is stored as a cancel with its cause before the guest is asked to end the exec.
#include <algorithm>

#include "base/failpoint.h"
#include "control/exec/sandbox_execs.h"
#include "store/decode.h"

namespace agbox {

void SandboxExecs::begin_timeout(RunningExec& exec) {
  const auto timeout = timeout_of(exec.shown->request);
  if (!timeout || !exec.record.has_accepted()) return;
  const Moment now = services_.clock.now();
  const auto age = std::min(time_since(decode_moment(exec.record.accepted()), now), *timeout);
  exec.times_out_at = now.boot + (*timeout - age);
}

void SandboxExecs::set_timeout_deadline() {
  std::optional<BootTime> first;
  for (const auto& [exec_id, exec] : execs_) {
    if (!exec.times_out_at || exec.is_ending || exec.record.cancel_requested()) continue;
    if (!first || *exec.times_out_at < *first) first = exec.times_out_at;
  }
  if (!first) return services_.exec_timeouts.clear(journal_.sandbox_id());
  services_.exec_timeouts.set(journal_.sandbox_id(), *first);
}

void SandboxExecs::end_timeouts() {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  const BootTime now = services_.clock.boot_now();
  for (auto& [exec_id, exec] : execs_) {
    if (!exec.times_out_at || *exec.times_out_at > now) continue;
    if (exec.is_ending || exec.record.cancel_requested()) continue;
    exec.record.set_timed_out(true);
    exec.record.set_cancel_requested(true);
    auto show = [this, id = exec_id, record = exec.record] {
      AGBOX_FAILPOINT("exec.timeout_commit.after");
      log_.info("exec takes longer than its timeout", {{"exec_id", id}});
      show_record(id, record);
      if (!find(id)->is_ending) send_cancel(id);
    };
    AGBOX_FAILPOINT("exec.timeout_commit.before");
    journal_.append({change::UpdateExec{exec_id, v1::EXEC_STATE_RUNNING, exec.record}},
                    Urgency::GoesOn, std::move(show));
  }
  set_timeout_deadline();
}

}  // namespace agbox
