// SPDX-License-Identifier: Apache-2.0
// The part of a sandbox that follows the restart plan: what an earlier run of the daemon left, what
// the engine shows of it, and the container that should run and does not.
//
//   guest lost, engine event, gap  ->  Look  ->  plan  ->  Adopt     the guest comes back by itself
//                                       ^                  Fail      FAILED, the container stopped
//                                       |                  Restart   execs end; wait; start it
//                                       again
//                                       +---- before each start ------------------------+
#include <chrono>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/failpoint.h"
#include "control/sandbox/container_loss.h"
#include "control/sandbox/sandbox_actor.h"
#include "control/sandbox/stored_life.h"

namespace agbox {

void SandboxActor::recover() {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (facts_.subnet) services_.subnets.take(*facts_.subnet);
  if (!is_deleted()) services_.isolation.keep_resolvers(id(), facts_.created_with);
  const RestartPlan plan = restart_plan(stored_now(), std::nullopt);
  switch (plan.step) {
    case RestartStep::StartOver:
      starts_over_ = true;  // once the engine is there, see work()
      break;
    case RestartStep::Fail:  // a create that took the daemon down with it too often
      cleans_up_ = true;
      decide_and_record(command::Refuse{plan.failure});
      break;
    case RestartStep::GoOn:
      go_on();
      break;
    case RestartStep::Look:  // when the engine is there
    case RestartStep::CleanUp:
    case RestartStep::Stay:
      break;
    case RestartStep::Adopt:
    case RestartStep::Restart:
      AGBOX_CHECK(false, "only the engine can tell whether a container runs");
  }
  if (has_guest()) std::ignore = adopt_guest();  // what is wrong with it is looked at
  set_deadline();
  work();
}

void SandboxActor::go_on() {
  if (life_.state == Lifecycle::Resuming) {
    // It starts the container anew, so it needs another secret.
    const OperationUnderWay again{Operation::Resuming, life_.reason, ++attempts_};
    record({}, {.execs = {}, .mutations = {new_start(), change::SetOperation{id(), again}}},
           Urgency::GoesOn, {});
  } else if (life_.state == Lifecycle::Stopping) {
    // One that was being accepted when the stop was decided is asked for its end only now.
    record({}, {.execs = execs_.cancel_all(), .mutations = {}}, Urgency::GoesOn, {});
  }
}

void SandboxActor::recover_unreadable(const std::string& why) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  is_unreadable_ = true;
  if (facts_.subnet) services_.subnets.take(*facts_.subnet);
  if (!is_deleted()) services_.isolation.keep_resolvers(id(), facts_.created_with);
  const Failure failure{.code = "RECORD_UNREADABLE",
                        .message = "what the daemon stored of the sandbox cannot be read (" + why +
                                   "); delete the sandbox and create it again"};
  switch (life_.state) {
    case Lifecycle::Creating:
      cleans_up_ = true;
      decide_and_record(command::Refuse{failure});
      break;
    case Lifecycle::Resuming:
      decide_and_record(command::Refuse{failure});
      break;
    case Lifecycle::Stopped:
      decide_and_record(command::LosePrimary{failure});
      break;
    case Lifecycle::Ready:
    case Lifecycle::Stopping:
      if (execs_.has_any()) {
        // Decided, and told once its container is stopped: its execs end before it does.
        life_ = apply(std::move(life_), event::Failed{failure});
        untold_failure_ = failure;
      } else if (life_.state == Lifecycle::Ready) {
        decide_and_record(command::LosePrimary{failure});
      } else {
        decide_and_record(command::Refuse{failure});
      }
      break;
    case Lifecycle::Failed:  // perhaps by an earlier run, which was ended before it could do more
    case Lifecycle::Deleting:
    case Lifecycle::Deleted:
      break;
  }
  must_halt_ = life_.state == Lifecycle::Failed && !cleans_up_;
  set_deadline();
  work();  // stopping and removing need nothing of what cannot be read
}

void SandboxActor::halted() {
  must_halt_ = false;
  std::vector<LifecycleEvent> events;
  if (untold_failure_) events.emplace_back(event::Failed{*untold_failure_});
  record(events,
         {.execs = execs_.end_all(outcome_of(
              ContainerLoss{.how = "it was stopped, because the sandbox's record cannot be read"})),
          .mutations = {}},
         Urgency::GoesOn, {});
}

SandboxClaim SandboxActor::claim() const {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (life_.state == Lifecycle::Deleted && !running_) {
    return {.kind = SandboxClaim::Kind::Deleted};
  }
  // An operation finds its things by their labels, and knows itself what to do with them.
  const bool is_at_work =
      running_ || is_unreadable_ || stored_operation(life_.state, cleans_up_) != Operation::None;
  if (is_at_work) return {.kind = SandboxClaim::Kind::Everything};
  SandboxClaim claim{.kind = SandboxClaim::Kind::Listed, .has_network = facts_.subnet.has_value()};
  for (const auto& [name, container] : facts_.containers) {
    if (!container.container_id().empty()) claim.container_ids.insert(container.container_id());
  }
  return claim;
}

// The guest of a sandbox that was ready comes back by itself once somebody listens.
guestlink::GuestResult<> SandboxActor::adopt_guest() {
  const store::v1::Container& primary = facts_.containers[""];
  auto adopted = services_.guests.adopt(
      id(), {.device = primary.guest_folder_device(), .inode = primary.guest_folder_inode()},
      facts_.link_root());
  if (adopted) {
    guestlink::Expectation expected;
    expected.secret = primary.secret();
    expected.uid = facts_.created_with.host_uid();
    expected.gid = facts_.created_with.host_gid();
    adopted = services_.guests.expect(id(), std::move(expected));
  }
  must_adopt_ = !adopted && adopted.error().kind() == guestlink::GuestErrorKind::Unavailable;
  has_guest_folder_ = adopted || must_adopt_;
  if (!adopted) log_.warn("guest cannot come back", {{"error", adopted.error().message()}});
  return adopted;
}

RestartPlan SandboxActor::plan_for(const SandboxLook& look) const {
  SandboxSeen seen = look.seen;
  seen.has_guest_folder = has_guest_folder_;
  return restart_plan(stored_now(), seen);
}

// --- looking ---

// A guest that is connected does not answer for its container: the engine may have taken the
// network from it.
void SandboxActor::doubt_container() {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  services_.guests.doubt(id());  // a start under way looks for itself
  look_if_it_should_run();
}

// The engine may not know yet that the container has ended when the guest's connection does; its
// own event then brings us here again.
void SandboxActor::doubt_guest() {
  services_.guests.doubt(id());
  look_unless_connected();
}

void SandboxActor::look_unless_connected() {
  if (!services_.guests.is_connected(id())) look_if_it_should_run();
}

void SandboxActor::look_if_it_should_run() {
  if (!has_guest()) return;
  if (is_down_ || life_.state == Lifecycle::Stopping) return;  // it is looked at anyway
  look_again();
}

void SandboxActor::look_again() {
  // What a look under way has seen may be older than what brings us here.
  looks_again_ = running_ && running_->kind == OperationKind::Look;
  must_look_ = true;
  work();
}

void SandboxActor::looked(const SandboxLook& look) {
  retry_pause_.reset();
  must_look_ = std::exchange(looks_again_, false);
  if (life_.state ==
      Lifecycle::Failed) {  // with execs that may have outlived an operation's refusal
    if (look.loss) {
      must_look_ = false;
      record({}, {.execs = execs_.end_all(outcome_of(*look.loss)), .mutations = {}},
             Urgency::GoesOn, {});
    }
    return work();
  }
  const RestartPlan plan = plan_for(look);
  switch (plan.step) {
    case RestartStep::Fail:
      return lose_primary(plan.failure,
                          look.loss.value_or(ContainerLoss{.how = "it was stopped, because " +
                                                                  plan.failure.message}));
    case RestartStep::Restart:
      AGBOX_CHECK(look.loss.has_value(), "a container that is started again was lost");
      return container_ended(*look.loss);
    case RestartStep::Adopt:
    case RestartStep::Stay:
    case RestartStep::Look:
    case RestartStep::StartOver:
    case RestartStep::GoOn:
    case RestartStep::CleanUp:
      return work();
  }
}

void SandboxActor::lose_primary(const Failure& failure, const ContainerLoss& loss) {
  must_look_ = false;
  log_.warn("sandbox failed", {{"error", failure.message}});
  decide_and_record(command::LosePrimary{failure},
                    {.execs = execs_.end_all(outcome_of(loss)), .mutations = {}});
  work();
}

// --- starting it again ---

void SandboxActor::container_ended(const ContainerLoss& loss) {
  const auto wait = crash_window_.ended(services_.clock.boot_now());
  if (!wait) return lose_primary(crash_failure(loss), loss);
  log_.warn("the container ended and is started again",
            {{"error", loss.how}, {"backoff", std::chrono::nanoseconds(*wait).count()}});
  must_look_ = false;
  is_down_ = true;
  AGBOX_FAILPOINT("restart.ends.before");
  record({}, {.execs = execs_.end_for_restart(outcome_of(loss)), .mutations = {}}, Urgency::GoesOn,
         {});
  restart_after(*wait);
}

void SandboxActor::restart_after(std::chrono::milliseconds wait) {
  must_restart_ = false;
  services_.restarts.set(id(), services_.clock.boot_now() + wait);
}

void SandboxActor::restart_is_due() {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  must_restart_ = is_down_;
  work();
}

// A start that fails counts like an end.
void SandboxActor::restart_failed(const OperationFailure& failure) {
  const auto wait = crash_window_.ended(services_.clock.boot_now());
  const ContainerLoss loss{.is_out_of_memory = false,
                           .how = "it could not be started again: " + failure.message()};
  if (!wait) return lose_primary(crash_failure(loss), loss);
  log_.warn("the container could not be started and is tried again",
            {{"error", failure.message()}, {"backoff", std::chrono::nanoseconds(*wait).count()}});
  restart_after(*wait);
}

void SandboxActor::restarted() {
  log_.info("the container was started again");
  forget_restart();
  has_guest_folder_ = true;
  must_adopt_ = false;
  crash_window_.started(services_.clock.boot_now());
  retry_pause_.reset();
  must_look_ = !services_.guests.is_connected(id());
  AGBOX_FAILPOINT("restart.commit.before");
  // What waits for it is given to the guest once a later daemon could take this guest in again.
  record({}, {.execs = {}, .mutations = stored(facts_)}, Urgency::GoesOn, [this](const Result<>&) {
    AGBOX_FAILPOINT("restart.commit.after");
    became_live();
    if (life_.state != Lifecycle::Ready || is_down_) return;
    execs_.take_again();
    execs_.guest_connected({});  // of this start it has none
  });
  work();
}

void SandboxActor::forget_restart() {
  is_down_ = false;
  must_restart_ = false;
  services_.restarts.clear(id());
}

}  // namespace agbox
