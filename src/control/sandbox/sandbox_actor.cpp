// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/sandbox_actor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/failpoint.h"
#include "base/overloaded.h"
#include "control/sandbox/stored_work.h"
#include "model/reasons.h"
#include "model/sandbox/time_to_live.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstRetryDelay = 100ms;
constexpr auto kLongestRetryDelay = std::chrono::milliseconds(30s);
// Reasons of a stop or a delete.
constexpr const char* kStopRequested = "stop_requested";
constexpr const char* kIdleTtl = "idle_ttl";
constexpr const char* kCleanupTtl = "cleanup_ttl";
constexpr const char* kLeaseExpired = "lease_expired";

const char* name_of(OperationKind kind) {
  switch (kind) {
    case OperationKind::Create:
    case OperationKind::StartOver:
      return "create";
    case OperationKind::UndoCreate:
      return "undo create";
    case OperationKind::Resume:
      return "resume";
    case OperationKind::UndoResume:
      return "undo resume";
    case OperationKind::Stop:
      return "stop";
    case OperationKind::Delete:
      return "delete";
    case OperationKind::CleanUp:
      return "clean up";
    case OperationKind::Inspect:
      return "inspect";
    case OperationKind::Restart:
      return "restart";
    case OperationKind::Pause:
      return "pause";
    case OperationKind::Unpause:
      return "unpause";
    case OperationKind::Halt:
      break;
  }
  return "halt";
}

}  // namespace

SandboxActor::SandboxActor(ActorServices& services, std::string sandbox_id, SandboxSpec spec,
                           store::v1::CreatedWith created_with)
    : services_(services),
      log_(services.log.with({"sandbox_id", sandbox_id})),
      facts_{.sandbox_id = std::move(sandbox_id),
             .spec = std::move(spec),
             .created_with = std::move(created_with),
             .subnet = std::nullopt,
             .containers = {}},
      state_(new_work()),
      place_(services.place.open(facts_.sandbox_id, *this)),
      lease_(services, facts_.sandbox_id, facts_.spec.lease_ttl),
      journal_(services, facts_.sandbox_id, facts_.spec.create_spec, facts_.created_with),
      execs_(services, as_seen_by_execs(), log_),
      companions_(services, {.facts = facts_, .place = *place_, .journal = journal_}, execs_, log_),
      is_reconnected_(services.loop.io().get_executor()),
      retry_timer_(services.loop.io().get_executor(), kFirstRetryDelay, kLongestRetryDelay) {}

SandboxActor::SandboxActor(ActorServices& services, SandboxRecord record, SandboxSpec spec)
    : services_(services),
      log_(services.log.with({"sandbox_id", record.sandbox_id})),
      facts_{.sandbox_id = record.sandbox_id,
             .spec = std::move(spec),
             .created_with = std::move(record.created_with),
             .subnet = std::move(record.subnet),
             .containers = record.containers},
      state_(work_of(record)),
      place_(services.place.open(facts_.sandbox_id, *this)),
      lease_(services, facts_.sandbox_id, facts_.spec.lease_ttl),
      journal_(services, record, facts_.created_with),
      execs_(services, as_seen_by_execs(), log_),
      companions_(services, {.facts = facts_, .place = *place_, .journal = journal_}, execs_, log_),
      is_reconnected_(services.loop.io().get_executor()),
      retry_timer_(services.loop.io().get_executor(), kFirstRetryDelay, kLongestRetryDelay) {
  keep_only_primary();
  execs_.restore(std::move(record.running_execs));
  if (is_restarting(state_)) execs_.hold_restored();
  showing_container_state({})();
  if (is_deleted()) forget_spec();
}

SandboxExecs::Sandbox SandboxActor::as_seen_by_execs() {
  return {
      .facts = facts_,
      .place = *place_,
      .journal = journal_,
      .guest_of_companion = [this](const std::string& name) { return companions_.guest_of(name); },
      .check_takes_execs = [this] { return check_takes_execs(); },
      .on_change = [this] { set_deadline(); }};
}

// --- start and recovery ---

SandboxActor::OnDisk SandboxActor::accept() {
  is_reconnected_.set();  // it never had a guest
  return obey(input::Accept{});
}

void SandboxActor::begin() {
  services_.isolation.keep_resolvers(id(), facts_.created_with);
  take(input::Begin{});
  lease_.start();
}

void SandboxActor::claim_shared() {
  services_.engine.restored(facts_);
  if (!is_deleted()) services_.isolation.keep_resolvers(id(), facts_.created_with);
}

void SandboxActor::recover() {
  claim_shared();
  report_isolation();
  if (may_have_guest()) {
    services_.tasks.spawn("sandbox " + id() + " reconnect", reconnect());
  } else {
    is_reconnected_.set();
  }
  if (is_up(state_)) companions_.primary_is_up(primary_start());
  take(input::Recover{});
  set_deadline();
  if (is_deletable()) lease_.start();
}

asio::awaitable<void> SandboxActor::reconnect() {
  const auto adopted = co_await place_->reconnect(facts_);
  guest_directory_ = directory_after(adopted);
  if (!adopted) log_.warn("guest cannot reconnect", {{"error", adopted.error().message()}});
  is_reconnected_.set();
}

void SandboxActor::recover_unreadable(const std::string& why) {
  claim_shared();
  is_reconnected_.set();
  is_unreadable_ = true;
  take(input::RecoverUnreadable{
      {.code = "RECORD_UNREADABLE",
       .message = "what the daemon stored of the sandbox cannot be read (" + why +
                  "); delete the sandbox and create it again"}});
  set_deadline();
}

// After a stop or a delete that the engine refused, the container may continue to run its execs.
bool SandboxActor::may_have_guest() const {
  return lifecycle().state == Lifecycle::Ready || lifecycle().state == Lifecycle::Stopping ||
         (lifecycle().state == Lifecycle::Failed && execs_.has_any());
}

SandboxClaim SandboxActor::claim() const {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  const bool is_running = std::holds_alternative<activity::Running>(state_.activity);
  if (lifecycle().state == Lifecycle::Deleted && !is_running) {
    return {.kind = SandboxClaim::Kind::Deleted};
  }
  // An operation finds its objects by label and handles them itself.
  if (is_running || is_unreadable_ || stored(state_).operation != Operation::None) {
    return {.kind = SandboxClaim::Kind::Everything};
  }
  if (companions_.is_creating()) return {.kind = SandboxClaim::Kind::Everything};
  SandboxClaim claim = listed_claim(facts_);
  for (const auto& [name, container] : companions_.containers()) {
    claim.container_ids.insert(container.container_id());
  }
  return claim;
}

Result<std::vector<NamedContainer>> SandboxActor::containers() const {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (is_deleted()) {
    return fail(reason::kContainerNotFound, "sandbox " + id() + " is deleted, with its containers",
                {{"sandbox_id", id()}});
  }
  const std::string& engine_id = facts_.created_with.engine_id();
  std::vector<NamedContainer> all{{"primary", {engine_id, facts_.primary_id()}}};
  const auto companions = companions_.containers();
  for (const v1::CompanionStatus& companion : handle().companions()) {
    const auto found = companions.find(companion.name());
    const std::string container_id =
        found == companions.end() ? std::string() : found->second.container_id();
    all.push_back({companion.name(), {engine_id, container_id}});
  }
  return all;
}

Result<ContainerId> SandboxActor::container(const std::string& name) const {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  const auto missing = [this](const std::string& why) {
    return fail(reason::kContainerNotFound, why, {{"sandbox_id", id()}});
  };
  if (is_deleted()) return missing("sandbox " + id() + " is deleted, with its containers and logs");
  const std::string& engine_id = facts_.created_with.engine_id();
  const bool is_pending = handle().state() == v1::SANDBOX_STATE_PENDING;
  std::string names = "primary";
  for (const v1::CompanionStatus& companion : handle().companions()) {
    names += ", " + companion.name();
    if (companion.name() != name) continue;
    const auto containers = companions_.containers();
    const auto found = containers.find(name);
    if (found != containers.end()) return ContainerId{engine_id, found->second.container_id()};
    if (is_pending || companion.state() == v1::COMPANION_STATE_STARTING) {
      return ContainerId{engine_id, {}};
    }
    const std::string& why = companion.error_message();
    return missing("container " + name + " of sandbox " + id() + " does not exist" +
                   (why.empty() ? std::string() : ": " + why));
  }
  if (!name.empty() && name != "primary") {
    return missing("sandbox " + id() + " has no container \"" + name +
                   "\"; its containers are: " + names);
  }
  std::string primary_id = facts_.primary_id();
  if (!primary_id.empty() || is_pending) return ContainerId{engine_id, std::move(primary_id)};
  const std::string& why = handle().error_message();
  return missing("the primary container of sandbox " + id() + " does not exist" +
                 (why.empty() ? std::string() : ": " + why));
}

Result<> SandboxActor::name_container(v1::CreateExecRequest& request) const {
  if (request.container().empty()) return {};
  AGBOX_TRY(found, container(request.container()));
  if (companions_.guest_of(request.container()) == nullptr) request.clear_container();
  return {};
}

// --- commands ---

// Work that needs the engine is not started while it is unreachable.
Result<> SandboxActor::check_engine() const {
  AGBOX_TRY(engine, services_.engine_status.check());
  const std::string& its_engine = facts_.created_with.engine_id();
  if (engine.id == its_engine) return {};
  return fail(reason::kEngineUnavailable, "sandbox " + id() + " is on the engine " + its_engine +
                                              ", but the daemon is connected to engine " +
                                              engine.id + "; start the sandbox's engine");
}

SandboxActor::OnDisk SandboxActor::stop() {
  const auto decision = decide(id(), lifecycle(), command::Stop{kStopRequested});
  if (!decision) return refuse(decision.error());
  if (auto engine = check_engine(); !decision->empty() && !engine) return refuse(engine.error());
  return obey(input::Stop{kStopRequested});
}

bool SandboxActor::has_containers_if_failed() const {
  const std::string& code = journal_.status().error_code;
  if (is_unreadable_ || cleans_up(state_)) return false;
  // Of a create, which removed its containers, or of a later start.
  if (code == reason::kMountChanged.name || code == reason::kAccountFileUnsafe.name ||
      code == reason::kPortInUse.name) {
    return !facts_.primary_id().empty();
  }
  return has_containers_after(code);
}

SandboxActor::OnDisk SandboxActor::resume() {
  const bool has_containers = has_containers_if_failed();
  const auto decision = decide(id(), lifecycle(), command::Resume{has_containers});
  if (!decision) return refuse(decision.error());
  if (auto engine = check_engine(); !engine) return refuse(engine.error());
  if (auto isolated = services_.isolation.check(); !isolated) return refuse(isolated.error());
  return obey(input::Resume{has_containers});
}

SandboxActor::OnDisk SandboxActor::remove(const std::string& reason) {
  return obey(input::Delete{reason});
}

Result<> SandboxActor::check_takes_execs() const {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  const command::StartExec start{.failure_code = journal_.status().error_code,
                                 .has_containers = has_containers_if_failed()};
  AGBOX_TRY(nothing, decide(id(), lifecycle(), start));
  const std::string& problem = state_.isolation.problem;
  if (problem.empty() || !services_.pauses_unisolated) return {};
  return fail(reason::kSandboxNotReady,
              "sandbox " + id() + " is not ready until its isolation holds again: " + problem,
              {{"sandbox_id", id()}});
}

Result<> SandboxActor::check_reaches_guest(const std::string& container) const {
  const CompanionGuest* const guest = companions_.guest_of(container);
  if (guest != nullptr) return guest->is_ready() ? Result<>() : check_engine();
  if (is_up(state_) && place_->is_connected()) return {};
  return check_engine();
}

void SandboxActor::time_is_up() {
  if (lifecycle().state == Lifecycle::Stopped || lifecycle().state == Lifecycle::Failed) {
    take(input::Delete{kCleanupTtl});
    return;
  }
  AGBOX_CHECK(lifecycle().state == Lifecycle::Ready, "only what is ready can be idle");
  take(input::Stop{kIdleTtl});
}

Result<> SandboxActor::check_holdable() const {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (!lease_.ttl()) {
    return fail(reason::kSandboxHasNoLease,
                "sandbox " + id() + " has no lease and is kept; lease_ttl of a create gives it one",
                {{"sandbox_id", id()}});
  }
  if (is_deletable()) return {};
  return fail(
      reason::kSandboxInvalidState,
      "sandbox " + id() + (is_deleted() ? " is deleted" : " is being deleted") + "; create another",
      {{"sandbox_id", id()}});
}

void SandboxActor::lease_is_due() {
  if (is_deletable() && lease_.has_expired()) take(input::Delete{kLeaseExpired});
}

void SandboxActor::count_file_copies(int by) {
  file_copies_ += static_cast<std::size_t>(by);
  set_deadline();
}

void SandboxActor::set_deadline() {
  auto ttl = time_to_live(lifecycle().state, execs_.has_any() || file_copies_ > 0,
                          facts_.spec.idle_ttl, services_.ttls);
  // Its history is purged only after readers can see that it is deleted.
  if (lifecycle().state == Lifecycle::Deleted && !is_deleted()) ttl.reset();
  if (!ttl) return services_.deadlines.clear(id());
  const Moment now = services_.clock.now();
  const auto age = std::min(time_since(journal_.quiet_since(), now), *ttl);
  services_.deadlines.set(id(), now.boot + (*ttl - age));
}

// --- what the engine, the guest and timers report ---

void SandboxActor::restart_is_due() {
  take(input::RestartDue{});
}

// A start in progress that waits for its guest rechecks its container.
void SandboxActor::engine_is_back() {
  place_->container_may_have_ended();
  companions_.engine_is_back();
  take(input::EngineBack{});
}

void SandboxActor::recheck_container() {
  place_->container_may_have_ended();
  take(input::RecheckContainer{});
}

void SandboxActor::isolation_failed(const std::string& why) {
  // While the primary is down nothing pauses it, and companions run on.
  if (is_restarting(state_)) companions_.isolation_failed();
  take(input::IsolationFailed{why});
}

void SandboxActor::isolation_holds(bool from_inside) {
  take(input::IsolationHolds{from_inside});
}

void SandboxActor::exec_ended(const ExecEnd& end) {
  if (companions_.hooks().owns(end.exec_id)) return companions_.hooks().ended(end);
  execs_.guest_ended(end);
}

void SandboxActor::exec_not_sent(const std::string& exec_id, const std::string& why) {
  if (companions_.hooks().owns(exec_id)) return companions_.hooks().not_sent(exec_id, why);
  execs_.guest_not_reached(exec_id, why);
}

void SandboxActor::guest_lost(const std::string&) {
  companions_.hooks().guest_lost();
  place_->container_may_have_ended();
  take(input::GuestLost{});
}

void SandboxActor::guest_connected(const GuestHello& hello) {
  if (take(input::GuestConnected{}).step.takes_guest) {
    GuestHello of_execs = hello;
    std::erase_if(of_execs.execs,
                  [this](const std::string& id) { return companions_.hooks().owns(id); });
    execs_.guest_connected(of_execs);
  }
  companions_.hooks().guest_connected(hello);
  services_.isolation.guest_connected(id());
}

// --- effects of the work table ---

Surroundings SandboxActor::surroundings() const {
  return {.now = services_.clock.boot_now(),
          .has_engine = check_engine().has_value(),
          .is_guest_connected = place_->is_connected(),
          .has_execs = execs_.has_any(),
          .is_shutting_down = services_.is_shutting_down,
          .pauses_unisolated = services_.pauses_unisolated};
}

SandboxActor::OnDisk SandboxActor::obey(const WorkInput& input) {
  const Taken taken = take(input);
  return taken.on_disk ? *taken.on_disk : journal_.append_nothing();
}

SandboxActor::Taken SandboxActor::take(const WorkInput& input) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  LifecycleStatus before = state_.lifecycle;
  const IsolationState isolation = state_.isolation;
  auto [state, next] = advance(std::move(state_), input, surroundings());
  state_ = std::move(state);
  keep_container_state();
  log_isolation(isolation);
  Taken taken{.step = std::move(next)};
  const WorkStep& step = taken.step;
  if (step.record) taken.on_disk = record(*step.record, std::move(before));
  if (step.uncounts_attempt) {
    // This sandbox may be destroyed before it is stored.
    services_.store.append({.mutations = {change::SetOperation{id(), stored(state_)}}},
                           [](const Result<Committed>&) {});
  }
  if (step.clears_restart) services_.restarts.clear(id());
  if (step.restart_in) {
    services_.restarts.set(id(), services_.clock.boot_now() + *step.restart_in);
  }
  follow_isolation(step);
  if (step.resets_backoff) retry_timer_.reset();
  if (step.backoff == WorkStep::Backoff::Begin) {
    services_.tasks.spawn("sandbox " + id() + " retry", backoff_over(retry_timer_.wait()));
  }
  if (step.backoff == WorkStep::Backoff::End) retry_timer_.skip();
  if (step.cancels) operation_->cancel();
  if (step.start) start(*step.start);
  // While it is created or resumed, the operation knows.
  const bool is_starting =
      lifecycle().state == Lifecycle::Creating || lifecycle().state == Lifecycle::Resuming;
  if (!is_up(state_) && !is_starting) companions_.primary_is_up(0);
  companions_.follow(wanted_of_companions());
  return taken;
}

// While it is created, resumed, stopped or paused, operations decide.
SandboxCompanions::Wanted SandboxActor::wanted_of_companions() const {
  if (lifecycle().state == Lifecycle::Failed) return SandboxCompanions::Wanted::Stop;
  if (lifecycle().state == Lifecycle::Deleting) return SandboxCompanions::Wanted::End;
  const bool may_be_paused = state_.isolation.paused != IsolationState::Paused::No ||
                             std::holds_alternative<work::Pause>(state_.work) ||
                             std::holds_alternative<work::Unpause>(state_.work);
  if (lifecycle().state != Lifecycle::Ready || may_be_paused) {
    return SandboxCompanions::Wanted::Leave;
  }
  return SandboxCompanions::Wanted::Run;
}

void SandboxActor::keep_only_primary() {
  std::erase_if(facts_.containers, [](const auto& entry) { return !entry.first.empty(); });
}

std::uint64_t SandboxActor::primary_start() const {
  const auto primary = facts_.containers.find("");
  return primary == facts_.containers.end() ? 0 : primary->second.start_count();
}

void SandboxActor::keep_container_state() {
  const auto primary = facts_.containers.find("");
  if (primary == facts_.containers.end()) return;
  put_isolation(state_.isolation, primary->second);
  put_restarts(state_, primary->second);
}

void SandboxActor::report_isolation() {
  const IsolationState& isolation = state_.isolation;
  const bool is_unverified = isolation.problem.empty() && !isolation.unverified.empty();
  services_.isolation.set_problem(id(),
                                  {.why = is_unverified ? isolation.unverified : isolation.problem,
                                   .paused = isolation.paused,
                                   .is_unverified = is_unverified});
}

void SandboxActor::follow_isolation(const WorkStep& step) {
  if (step.record && step.record->has_isolation) report_isolation();
  if (step.clears_verification) services_.verifications.clear(id());
  if (!step.verify_in || services_.is_shutting_down) return;
  if (*step.verify_in == 0ms) return services_.isolation.verify_soon(id());
  services_.verifications.set(id(), services_.clock.boot_now() + *step.verify_in);
}

// Combines `show` with what is known of the container now: its isolation, restarts and warnings.
SandboxJournal::Show SandboxActor::showing_container_state(SandboxJournal::Show show) {
  const auto primary = facts_.containers.find("");
  const store::v1::Container container =
      primary == facts_.containers.end() ? store::v1::Container() : primary->second;
  return [this, show = std::move(show), problem = state_.isolation.problem,
          is_paused = state_.isolation.paused == IsolationState::Paused::Yes,
          unverified = state_.isolation.unverified, restarts = state_.restarts,
          warnings = container.warnings()] {
    if (show) show();
    journal_.show_isolation(problem, is_paused && !problem.empty(), unverified);
    journal_.show_restarts(restarts.count, restarts.last_exit);
    journal_.show_warnings(warnings);
  };
}

void SandboxActor::log_isolation(const IsolationState& before) const {
  using Paused = IsolationState::Paused;
  const IsolationState& now = state_.isolation;
  if (before.paused == Paused::Begun && now.paused == Paused::Yes) {
    log_.warn("sandbox paused until its isolation holds again", {{"error", now.problem}});
  }
  if (before.unverified.empty() && !now.unverified.empty()) {
    log_.warn("sandbox isolation cannot be verified from inside", {{"error", now.unverified}});
  }
  if (!before.unverified.empty() && now.unverified.empty() && now.problem.empty() &&
      is_up(state_)) {
    log_.info("sandbox isolation is verified from inside again");
  }
  if (now.problem.empty()) {
    if (!before.problem.empty() && is_up(state_)) log_.info("sandbox isolation holds again");
  } else if (before.paused != Paused::No && now.released == IsolationState::Released::Unpaused) {
    log_.info("sandbox unpaused to verify its isolation from inside");
  }
}

SandboxActor::OnDisk SandboxActor::record(const Record& change, LifecycleStatus lifecycle) {
  if (change.execs == ExecsChange::EndForRestart) AGBOX_FAILPOINT("restart.ends.before");
  if (change.then == Record::Then::IsRestarted) AGBOX_FAILPOINT("restart.commit.before");
  const bool is_new = journal_.status().state == v1::SANDBOX_STATE_UNSPECIFIED;
  SandboxExecs::Part execs = change_execs(change);
  if (change.then == Record::Then::IsLive) execs_.take_again();
  std::vector<Mutation> mutations = std::move(execs.mutations);
  std::ranges::move(mutations_of(change, std::move(lifecycle)), std::back_inserter(mutations));
  const bool has_container_state =
      change.has_isolation || change.has_restarts || change.has_objects;
  // Actors are destroyed only after their last commit, so `this` is valid.
  auto show = [this, then = change.then,
               first = has_container_state ? showing_container_state(std::move(execs.show))
                                           : std::move(execs.show)] {
    if (first) first();
    after(then);
  };
  const OnDisk on_disk = journal_.append(
      std::move(mutations), is_new ? Urgency::NewWork : Urgency::GoesOn, std::move(show));
  // Before it is accepted another sandbox may have the same ID; a create has no deadline.
  if (!change.events.empty() && !is_new) set_deadline();
  return on_disk;
}

std::vector<Mutation> SandboxActor::mutations_of(const Record& change, LifecycleStatus lifecycle) {
  const bool is_new = journal_.status().state == v1::SANDBOX_STATE_UNSPECIFIED;
  std::vector<Mutation> mutations;
  for (const LifecycleEvent& event : change.events) {
    log_event(event, lifecycle.state);
    lifecycle = apply(std::move(lifecycle), event);
    mutations.push_back(journal_.entry(to_message(id(), lifecycle, event)));
  }
  const bool has_events = !change.events.empty();
  if (is_new) {
    mutations.insert(mutations.begin(), change::CreateSandbox{.sandbox_id = id(),
                                                              .created_at = journal_.created_at(),
                                                              .status = journal_.status(),
                                                              .operation = stored(state_),
                                                              .spec = facts_.spec.create_spec,
                                                              .created_with = facts_.created_with});
  } else if (has_events) {
    mutations.emplace_back(change::SetStatus{id(), journal_.status()});
  }
  if (!is_new && (has_events || change.has_operation)) {
    mutations.emplace_back(change::SetOperation{id(), stored(state_)});
  }
  if (change.has_new_secret) mutations.push_back(new_start());
  if (change.has_objects) {
    std::ranges::move(stored(facts_), std::back_inserter(mutations));
    std::ranges::move(companions_.stored(), std::back_inserter(mutations));
  } else if ((change.has_isolation || change.has_restarts) && facts_.containers.contains("")) {
    mutations.emplace_back(change::PutContainer{id(), "", facts_.containers.at("")});
  }
  if (change.then == Record::Then::IsDeleted) {
    mutations.emplace_back(change::MarkDeleted{id(), journal_.now()});
  }
  return mutations;
}

Mutation SandboxActor::new_start() {
  facts_.next_secret = place_->new_secret();
  const auto known = facts_.containers.find("");
  store::v1::Container primary =
      known == facts_.containers.end() ? store::v1::Container() : known->second;
  primary.set_secret(facts_.next_secret);
  primary.clear_guest_pid();
  primary.clear_guest_start_ticks();
  return change::PutContainer{id(), "", std::move(primary)};
}

SandboxExecs::Part SandboxActor::change_execs(const Record& change) {
  const ExecOutcome outcome = change.loss ? outcome_of(*change.loss) : cancelled_outcome();
  switch (change.execs) {
    case ExecsChange::Keep:
      return {};
    case ExecsChange::Cancel:
      return execs_.cancel_all();
    case ExecsChange::End:
      return execs_.end_all(outcome);
    case ExecsChange::EndUnsent:
      return execs_.end_unsent(outcome);
    case ExecsChange::EndForRestart:
      return execs_.end_for_restart(outcome);
  }
  die("a change of execs that is none");
}

void SandboxActor::after(Record::Then then) {
  switch (then) {
    case Record::Then::Nothing:
      return;
    case Record::Then::IsLive:
      return became_live();
    case Record::Then::IsRestarted:
      return restarted();
    case Record::Then::IsDeleted:
      return deleted();
  }
}

void SandboxActor::log_event(const LifecycleEvent& event, Lifecycle before) const {
  const char* const start = before == Lifecycle::Creating ? "create"
                            : before == Lifecycle::Ready  ? "restart"
                                                          : "resume";
  std::visit(
      Overloaded{
          [&](const event::Accepted&) {
            log_.info(before == Lifecycle::Creating ? "sandbox create accepted"
                                                    : "sandbox resume accepted",
                      {{"operation", start}});
          },
          [](const event::Preparing&) {},
          [&](const event::Ready&) { log_.info("sandbox ready", {{"operation", start}}); },
          [&](const event::Failed& failed) {
            log_.warn("sandbox failed", {{"error", failed.failure.message}});
          },
          [&](const event::StopRequested& requested) {
            log_.info("sandbox stop requested",
                      {{"operation", "stop"}, {"reason", requested.reason}});
          },
          [&](const event::Stopped&) { log_.info("sandbox stopped", {{"operation", "stop"}}); },
          [&](const event::DeleteRequested& requested) {
            log_.info("sandbox delete requested",
                      {{"operation", "delete"}, {"reason", requested.reason}});
          },
          [&](const event::Deleted&) { log_.info("sandbox deleted", {{"operation", "delete"}}); },
      },
      event);
}

// Its isolation was verified before its entrypoint ran, possibly a minute ago.
void SandboxActor::became_live() {
  if (!services_.is_shutting_down) services_.isolation.sandbox_is_live(id());
}

// The guest gets the waiting execs only once a later daemon could adopt this guest.
void SandboxActor::restarted() {
  AGBOX_FAILPOINT("restart.commit.after");
  became_live();
  if (!is_up(state_)) return;
  execs_.take_again();
  execs_.guest_connected({});  // a new start has no execs yet
}

void SandboxActor::deleted() {
  services_.isolation.forget(id());
  companions_.forget();
  lease_.end();
  forget_spec();
  set_deadline();
}

// A deleted sandbox keeps its history for days: free what only operations need, possibly megabytes.
void SandboxActor::forget_spec() {
  journal_.forget_companion_specs();
  facts_.spec = {};
  store::v1::CreatedWith kept;
  kept.set_exec_output_root(facts_.created_with.exec_output_root());
  kept.set_exec_output_max_bytes(facts_.created_with.exec_output_max_bytes());
  facts_.created_with = std::move(kept);
}

// --- operations ---

void SandboxActor::start(OperationKind kind) {
  // Not stored before: an interrupted restart is repeated with a new one.
  if (kind == OperationKind::Restart) facts_.next_secret = place_->new_secret();
  operation_ = services_.tasks.spawn("sandbox " + id(), run(kind));
}

asio::awaitable<void> SandboxActor::run(OperationKind kind) {
  co_await is_reconnected_.wait_uncancelled();
  auto progress = [this](std::string phase) { take(input::Progress{std::move(phase)}); };
  const auto* pause = std::get_if<work::Pause>(&state_.work);
  OperationRun run{.kind = kind,
                   .state = lifecycle().state,
                   .facts = facts_,
                   .guest_directory = guest_directory_,
                   .decision = journal_.append_nothing(),
                   .may_be_paused = pause != nullptr && pause->may_be_done,
                   .place = *place_,
                   .execs = execs_,
                   .companions = companions_,
                   .objects_made = objects_made_,
                   .progress = std::move(progress)};
  ended(kind, co_await run_operation(services_.operations, std::move(run), log_));
}

void SandboxActor::ended(OperationKind kind, OperationReport report) {
  // A secret that was chosen in the meantime is for the next operation.
  report.facts.next_secret = std::move(facts_.next_secret);
  facts_ = std::move(report.facts);
  keep_only_primary();
  guest_directory_ = report.guest_directory;
  input::Ended end{.end = end_of(report.result),
                   .is_outdated = report.is_outdated,
                   .inspection = std::move(report.inspection),
                   .is_paused_by_others = report.is_paused_by_others};
  if (!report.result) {
    end.message = report.result.error().message() + report.engine_remark;
    end.code = report.result.error().code();
  }
  const bool lacks_guest = end.inspection && !end.inspection->loss && !place_->is_connected();
  const WorkStep step = take(end).step;
  log_end(kind, end, step);
  // A guest that stays away may be hostile.
  if (lacks_guest && is_up(state_) && !services_.is_shutting_down) {
    services_.isolation.verify_soon(id());
  }
}

void SandboxActor::log_end(OperationKind kind, const input::Ended& end,
                           const WorkStep& step) const {
  if (step.backoff == WorkStep::Backoff::Begin) {
    log_.warn("operation is tried again", {{"operation", name_of(kind)}, {"error", end.message}});
  }
  const bool is_refused = end.end == OperationEnd::Refused || end.end == OperationEnd::Lost;
  if (kind == OperationKind::Pause && is_refused && is_up(state_)) {
    log_.error("sandbox cannot be paused and runs without isolation", {{"error", end.message}});
  }
  if (kind == OperationKind::Pause && end.is_paused_by_others) {
    log_.warn("sandbox without isolation is paused by another process, which may unpause it");
  }
  if (step.restart_in) {
    const bool has_ended = end.inspection && end.inspection->loss;
    log_.warn(has_ended ? "the container ended and is started again"
                        : "the container could not be started and is tried again",
              {{"error", has_ended ? end.inspection->loss->how : end.message},
               {"backoff", std::chrono::nanoseconds(*step.restart_in).count()}});
  }
  if (step.record && step.record->then == Record::Then::IsRestarted) {
    log_.info("the container was started again");
  }
  if (kind == OperationKind::UndoResume && end.end != OperationEnd::Done && step.record) {
    log_.warn("the container of a failed resume may run until the sandbox is deleted");
  }
}

asio::awaitable<void> SandboxActor::backoff_over(asio::awaitable<bool> backoff) {
  co_await std::move(backoff);
  take(input::BackoffOver{});
}

}  // namespace agbox
