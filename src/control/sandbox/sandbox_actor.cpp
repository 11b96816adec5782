// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/sandbox_actor.h"

#include <algorithm>
#include <utility>

#include "async/cancellation.h"
#include "async/run_blocking.h"
#include "base/check.h"
#include "control/commit.h"
#include "control/sandbox/container_loss.h"
#include "control/sandbox/operations/look.h"
#include "control/sandbox/operations/materialize.h"
#include "control/sandbox/operations/resume.h"
#include "control/sandbox/operations/stop.h"
#include "control/sandbox/operations/teardown.h"
#include "control/sandbox/stored_life.h"
#include "execlog/disk_room.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstRetryPause = 100ms;
constexpr auto kLongestRetryPause = std::chrono::milliseconds(30s);
constexpr auto kCleanUpLimit = 30s;
constexpr const char* kMaterialize = "materialize";  // the phase

}  // namespace

SandboxActor::SandboxActor(Services& services, std::string sandbox_id, SandboxSpec spec,
                           store::v1::CreatedWith created_with)
    : services_(services),
      log_(services.log.with({"sandbox_id", sandbox_id})),
      facts_{.sandbox_id = std::move(sandbox_id),
             .spec = std::move(spec),
             .created_with = std::move(created_with),
             .subnet = std::nullopt,
             .containers = {}},
      attempts_(1),
      journal_(services, facts_.sandbox_id, facts_.spec.create_spec),
      execs_(services, journal_, facts_, log_, [this] { set_deadline(); }),
      retry_pause_(services.loop.io().get_executor(), kFirstRetryPause, kLongestRetryPause) {}

SandboxActor::SandboxActor(Services& services, SandboxRecord record, SandboxSpec spec)
    : services_(services),
      log_(services.log.with({"sandbox_id", record.sandbox_id})),
      facts_{.sandbox_id = record.sandbox_id,
             .spec = std::move(spec),
             .created_with = std::move(record.created_with),
             .subnet = std::move(record.subnet),
             .containers = std::move(record.containers)},
      life_{.state = life_of(record), .reason = record.operation.reason},
      cleans_up_(record.operation.operation == Operation::CleaningUp),
      attempts_(record.operation.attempts),
      journal_(services, record),
      execs_(services, journal_, facts_, log_, [this] { set_deadline(); }),
      retry_pause_(services.loop.io().get_executor(), kFirstRetryPause, kLongestRetryPause) {
  execs_.restore(std::move(record.running_execs));
  if (is_deleted()) forget_spec();
}

void SandboxActor::accept(Reply reply) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  log_.info("sandbox create accepted", {{"operation", "create"}});
  // It begins as soon as it is accepted, so both are one change.
  has_prepared_ = true;
  record({event::Accepted{}, event::Preparing{kMaterialize}},
         {.execs = {}, .mutations = {new_start()}}, Urgency::NewWork, std::move(reply));
}

void SandboxActor::begin() {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  services_.isolation.keep_resolvers(id(), facts_.created_with);
  work();
}

Mutation SandboxActor::new_start() {
  facts_.next_secret = guestlink::new_secret();
  const auto known = facts_.containers.find("");
  store::v1::Container primary =
      known == facts_.containers.end() ? store::v1::Container() : known->second;
  primary.set_secret(facts_.next_secret);
  return change::PutContainer{id(), "", std::move(primary)};
}

void SandboxActor::record(const std::vector<LifecycleEvent>& events, Beside beside, Urgency urgency,
                          Reply reply) {
  const bool is_new = journal_.status().state == v1::SANDBOX_STATE_UNSPECIFIED;
  std::vector<Mutation> mutations = std::move(beside.execs.mutations);
  for (const LifecycleEvent& event : events) {
    life_ = apply(std::move(life_), event);
    mutations.push_back(journal_.entry(to_message(id(), life_, event)));
  }
  if (!events.empty()) {  // no series of crashes outlives a stop or a resume
    forget_restart();
    crash_window_.reset();
    untold_failure_.reset();  // told now, or overtaken by a delete
  }
  const OperationUnderWay operation{.operation = stored_operation(life_.state, cleans_up_),
                                    .reason = life_.reason,
                                    .attempts = attempts_};
  if (is_new) {
    mutations.insert(mutations.begin(), change::CreateSandbox{.sandbox_id = id(),
                                                              .created_at = journal_.created_at(),
                                                              .status = journal_.status(),
                                                              .operation = operation,
                                                              .spec = facts_.spec.create_spec,
                                                              .created_with = facts_.created_with});
  } else if (!events.empty()) {
    mutations.emplace_back(change::SetStatus{id(), journal_.status()});
    mutations.emplace_back(change::SetOperation{id(), operation});
  }
  std::ranges::move(beside.mutations, std::back_inserter(mutations));
  // Actors are erased only after their last commit, so `this` lives.
  journal_.append(std::move(mutations), urgency, std::move(beside.execs.show), std::move(reply));
  if (!events.empty()) set_deadline();
}

// A deleted sandbox is kept for its history, for days: what only operations need may be megabytes.
void SandboxActor::forget_spec() {
  facts_.spec = {};
  std::string exec_output_root = facts_.created_with.exec_output_root();
  facts_.created_with.Clear();
  facts_.created_with.set_exec_output_root(std::move(exec_output_root));
}

void SandboxActor::decide_and_record(const LifecycleCommand& command, Beside beside, Reply reply) {
  const auto decision = decide(id(), life_, command);
  AGBOX_CHECK(decision.has_value(), "an operation reports only while it is the current one");
  record(*decision, std::move(beside), Urgency::GoesOn, std::move(reply));
}

std::optional<OperationKind> SandboxActor::wanted_operation() const {
  switch (life_.state) {
    case Lifecycle::Creating:
      return OperationKind::Create;
    case Lifecycle::Stopping:
      return OperationKind::Stop;
    case Lifecycle::Resuming:
      return OperationKind::Resume;
    case Lifecycle::Deleting:
      return OperationKind::Delete;
    case Lifecycle::Failed:
      if (cleans_up_) return OperationKind::CleanUp;
      if (must_halt_) return OperationKind::Halt;
      break;
    case Lifecycle::Ready:
    case Lifecycle::Stopped:
    case Lifecycle::Deleted:
      break;
  }
  if (must_restart_) return OperationKind::Restart;
  const bool may_look = has_guest() || life_.state == Lifecycle::Stopped;
  if (may_look && must_look_) return OperationKind::Look;
  return std::nullopt;
}

void SandboxActor::work() {
  if (services_.is_shutting_down) return;  // the next start goes on with it
  const auto wanted = wanted_operation();
  if (running_) {
    // Never two at once: the old one is asked to end, and its end brings us here again.
    if (running_->kind != wanted) running_->cancel->emit(asio::cancellation_type::terminal);
    return;
  }
  if (!wanted) return;
  if (retry_pause_.is_waiting()) return retry_pause_.skip();  // which brings us here again
  if (*wanted == OperationKind::Create && !has_prepared_) {
    if (!check_engine()) return;  // nothing is begun, and engine_is_back() brings us here again
    has_prepared_ = true;
    ++attempts_;
    decide_and_record(command::Prepare{kMaterialize}, {.execs = {}, .mutations = {new_start()}});
  }
  running_.emplace(Running{.kind = *wanted});
  // Not stored before: what is interrupted is started once more, with another one.
  if (*wanted == OperationKind::Restart) facts_.next_secret = guestlink::new_secret();
  running_->cancel = services_.tasks.spawn("sandbox " + id(), run(*wanted));
}

asio::awaitable<void> SandboxActor::run(OperationKind kind) {
  OperationOutcome outcome{.result = {}, .facts = facts_};
  // Nothing is done before the decision to do it is on disk: a crash could neither go on with it
  // nor count it.
  if (auto decided = co_await commit(services_.store, {}); !decided) {
    outcome.result = std::unexpected<OperationFailure>(decided.error());
    co_return ended(kind, std::move(outcome));
  }
  switch (kind) {
    case OperationKind::Create: {
      // What an interrupted attempt left is not trusted: it starts over from nothing.
      if (starts_over_) outcome.result = co_await teardown(services_, outcome.facts);
      if (outcome.result) {
        auto progress = [this](std::string phase) { report_progress(std::move(phase)); };
        outcome.result = co_await materialize(services_, outcome.facts, std::move(progress));
      }
      if (!outcome.result && is_final(kind, outcome.result.error()) && !co_await is_cancelled()) {
        was_made_since_teardown_ = false;
        outcome.has_cleaned_up =
            (co_await teardown_within(services_, outcome.facts, kCleanUpLimit)).has_value();
      }
      break;
    }
    case OperationKind::Stop:
      outcome.result = co_await stop_sandbox(services_, outcome.facts, execs_);
      break;
    case OperationKind::Resume:
      outcome.result = co_await resume_sandbox(services_, outcome.facts);
      if (!outcome.result && is_final(kind, outcome.result.error()) && !co_await is_cancelled()) {
        auto undone = co_await undo_resume(services_, outcome.facts);
        outcome.has_cleaned_up = undone.has_value();
        // With the engine away, it was perhaps not the resume that failed.
        if (!undone && !is_definite(undone.error())) outcome.result = std::move(undone);
      }
      break;
    case OperationKind::CleanUp:
    case OperationKind::Delete:
      was_made_since_teardown_ = false;
      outcome.result = co_await teardown(services_, outcome.facts);
      break;
    case OperationKind::Halt:
      outcome.result = co_await halt_sandbox(services_, outcome.facts);
      break;
    case OperationKind::Look:
    case OperationKind::Restart:
      outcome.result = co_await look(kind, outcome);
      break;
  }
  if (!outcome.result && is_definite(outcome.result.error()) && services_.engine_now) {
    outcome.disk_remark = co_await run_blocking(
        services_.blocking,
        [root = services_.engine_now->root_folder] { return full_disk_remark(root); });
  }
  ended(kind, std::move(outcome));
}

// What is seen and not acted on here is left in the outcome.
asio::awaitable<OperationResult<>> SandboxActor::look(OperationKind kind,
                                                      OperationOutcome& outcome) {
  // A host that cannot isolate it for a while is no failure of its own.
  if (kind == OperationKind::Restart) {
    AGBOX_CO_TRY_VOID(co_await services_.isolation.at_last_in_place());
  }
  AGBOX_CO_TRY(look, co_await look_at_sandbox(services_, outcome.facts));
  if (must_adopt_ && runs(look.seen.primary)) {
    if (auto adopted = adopt_guest(); must_adopt_) co_return adopted;
  }
  const RestartPlan plan = plan_for(look);
  if (kind == OperationKind::Restart && plan.step != RestartStep::Fail) {
    auto started = co_await resume_sandbox(services_, outcome.facts);
    if (started || !is_definite(started.error()) || co_await is_cancelled()) co_return started;
    const auto undone = co_await undo_resume(services_, outcome.facts);
    if (!undone) log_.warn("a failed start is not undone", {{"error", undone.error().message()}});
    co_return started;
  }
  // Neither what cannot be used nor what somebody else started runs on.
  const bool is_unusable = plan.step == RestartStep::Fail || plan.step == RestartStep::Restart;
  if (is_unusable && runs(look.seen.primary)) {
    const auto stopped = co_await stop_unusable(services_, outcome.facts);
    if (!stopped && !is_definite(stopped.error())) co_return stopped;
    if (!stopped) log_.warn("the container runs on", {{"error", stopped.error().message()}});
  }
  outcome.look = look;
  co_return OperationResult<>{};
}

void SandboxActor::engine_is_back() {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  retry_pause_.reset();
  doubt_guest();  // its events of the time between are lost
  if (life_.state == Lifecycle::Stopped) look_again();
  work();
}

// --- execs and the guest ---

bool SandboxActor::has_guest() const {
  // After a stop or a delete that the engine refused, the container may well run on with what is in
  // it.
  return life_.state == Lifecycle::Ready || life_.state == Lifecycle::Stopping ||
         (life_.state == Lifecycle::Failed && execs_.has_any());
}

Result<> SandboxActor::check_takes_execs() const {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  AGBOX_TRY(nothing, decide(id(), life_, command::StartExec{}));
  return {};
}

void SandboxActor::guest_connected(const guestlink::GuestHello& hello) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (!has_guest() || is_down_) return;  // that of a start under way is the start's affair
  must_look_ = false;
  work();  // nobody need look any more
  execs_.guest_connected(hello);
}

void SandboxActor::report_progress(std::string phase) {
  if (life_.state == Lifecycle::Creating) decide_and_record(command::Prepare{std::move(phase)});
}

}  // namespace agbox
