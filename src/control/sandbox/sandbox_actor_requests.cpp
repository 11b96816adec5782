// SPDX-License-Identifier: Apache-2.0
// The part of a sandbox that is about what is wanted of it: by clients, and by the time for which
// nobody wanted anything.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "control/sandbox/sandbox_actor.h"
#include "model/reasons.h"
#include "model/sandbox/time_to_live.h"

namespace agbox {
namespace {

// Why it is stopped or deleted.
constexpr const char* kStopRequested = "stop_requested";
constexpr const char* kIdleTtl = "idle_ttl";
constexpr const char* kCleanupTtl = "cleanup_ttl";

}  // namespace

// Work that only the engine can do is not begun while it is away.
Result<> SandboxActor::check_engine() const {
  if (!services_.engine_now) return fail(reason::kEngineUnavailable, services_.engine_problem);
  const std::string& its_engine = facts_.created_with.engine_id();
  if (services_.engine_now->id == its_engine) return {};
  return fail(reason::kEngineUnavailable, "sandbox " + id() + " is on the engine " + its_engine +
                                              ", and another one (" + services_.engine_now->id +
                                              ") answers now; bring its engine back");
}

void SandboxActor::stop(Reply reply) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  const auto decision = decide(id(), life_, command::Stop{kStopRequested});
  if (!decision) return reply(std::unexpected(decision.error()));
  if (decision->empty()) return record({}, {}, Urgency::GoesOn, std::move(reply));
  if (auto engine = check_engine(); !engine) return reply(std::unexpected(engine.error()));
  begin_stop(*decision, std::move(reply));
}

void SandboxActor::begin_stop(const std::vector<LifecycleEvent>& events, Reply reply) {
  attempts_ = 1;
  must_look_ = false;
  record(events, {.execs = execs_.cancel_all(), .mutations = {}}, Urgency::GoesOn,
         std::move(reply));
  log_.info("sandbox stop requested", {{"operation", "stop"}, {"reason", life_.reason}});
  work();
}

void SandboxActor::resume(Reply reply) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  const auto decision = decide(id(), life_, command::Resume{});
  if (!decision) return reply(std::unexpected(decision.error()));
  if (auto engine = check_engine(); !engine) return reply(std::unexpected(engine.error()));
  if (auto isolated = services_.isolation.check(); !isolated) {
    return reply(std::unexpected(isolated.error()));
  }
  attempts_ = 1;
  lost_starts_ = 0;
  log_.info("sandbox resume accepted", {{"operation", "resume"}});
  record(*decision, {.execs = {}, .mutations = {new_start()}}, Urgency::GoesOn, std::move(reply));
  work();
}

void SandboxActor::remove(const std::string& reason, Reply reply) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  const auto decision = decide(id(), life_, command::Delete{reason});
  AGBOX_CHECK(decision.has_value(), "delete is legal in every state");
  if (!decision->empty()) {
    attempts_ = 1;
    log_.info("sandbox delete requested", {{"operation", "delete"}, {"reason", reason}});
  }
  record(*decision, {}, Urgency::GoesOn, std::move(reply));
  work();
}

// --- left alone ---

void SandboxActor::set_deadline() {
  auto ttl = time_to_live(life_.state, execs_.has_any(), facts_.spec.idle_ttl, services_.ttls);
  // Its history goes only once readers know that it is deleted.
  if (life_.state == Lifecycle::Deleted && !is_deleted()) ttl.reset();
  if (!ttl) return services_.deadlines.clear(id());
  const Moment now = services_.clock.now();
  const auto age = std::min(time_since(journal_.quiet_since(), now), *ttl);
  services_.deadlines.set(id(), now.boot + (*ttl - age));
}

void SandboxActor::time_is_up() {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (life_.state == Lifecycle::Stopped || life_.state == Lifecycle::Failed) {
    return remove(kCleanupTtl, {});
  }
  const auto decision = decide(id(), life_, command::Stop{kIdleTtl});
  AGBOX_CHECK(decision.has_value(), "only what is ready can be idle");
  begin_stop(*decision, {});
}

}  // namespace agbox
