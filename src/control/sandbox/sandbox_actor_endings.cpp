// SPDX-License-Identifier: Apache-2.0
// The part of a sandbox that is about how its operations end: what is recorded then, what is told,
// and what is tried again.
#include <string>
#include <utility>

#include "control/sandbox/sandbox_actor.h"
#include "control/sandbox/stored_life.h"

namespace agbox {
namespace {

// An engine that restarts ends every container, one that is being started too. One that ends by
// itself does so each time.
constexpr unsigned kLostStartsForgiven = 2;

}  // namespace

void SandboxActor::ended(OperationKind kind, OperationOutcome outcome) {
  running_.reset();
  // A secret that was decided on meanwhile is for the operation to come.
  outcome.facts.next_secret = std::move(facts_.next_secret);
  facts_ = std::move(outcome.facts);
  if (services_.is_shutting_down) return uncount_create();
  if (wanted_operation() != kind) return work();
  if (end_of(outcome.result) != OperationEnd::Done) {
    return not_done(kind, outcome);
  }
  if (outcome.look) return looked(*outcome.look);
  const bool is_teardown = kind == OperationKind::Delete || kind == OperationKind::CleanUp;
  if (is_teardown && was_made_since_teardown_) return work();
  succeeded(kind);
}

void SandboxActor::not_done(OperationKind kind, const OperationOutcome& outcome) {
  const OperationFailure& failure = outcome.result.error();
  if (is_final(kind, failure)) return failed(kind, outcome);
  log_.warn("operation is tried again", {{"error", failure.message()}});
  if (failure.end() == OperationEnd::Lost) {
    ++lost_starts_;
    starts_over_ = true;
    record({}, {.execs = {}, .mutations = {new_start()}}, Urgency::GoesOn, {});
  }
  retry_later();
}

// An end of the daemon that was asked for is not the create's doing, and is not counted against it.
void SandboxActor::uncount_create() {
  if (life_.state != Lifecycle::Creating || !std::exchange(has_prepared_, false)) return;
  const OperationUnderWay uncounted{Operation::Creating, life_.reason, --attempts_};
  // Nobody is here any more when it is stored.
  services_.store.append({.mutations = {change::SetOperation{id(), uncounted}}},
                         [](const Result<Committed>&) {});
}

bool SandboxActor::is_final(OperationKind kind, const OperationFailure& failure) const {
  const bool is_start = kind == OperationKind::Create || kind == OperationKind::Resume;
  if (is_start && failure.end() == OperationEnd::Lost) return lost_starts_ >= kLostStartsForgiven;
  return is_definite(failure);
}

void SandboxActor::succeeded(OperationKind kind) {
  retry_pause_.reset();
  std::vector<Mutation> facts = stored(facts_);
  switch (kind) {
    case OperationKind::Create:
      log_.info("sandbox ready", {{"operation", "create"}});
      return decide_and_record(command::Succeed{}, {.execs = {}, .mutations = std::move(facts)},
                               [this](const Result<>&) { became_live(); });
    case OperationKind::Resume:
      log_.info("sandbox ready", {{"operation", "resume"}});
      execs_.take_again();
      return decide_and_record(command::Succeed{}, {.execs = {}, .mutations = std::move(facts)},
                               [this](const Result<>&) { became_live(); });
    case OperationKind::Stop:
      log_.info("sandbox stopped", {{"operation", "stop"}});
      // Whatever ran is over with the container.
      return decide_and_record(command::Succeed{},
                               {.execs = execs_.end_all(cancelled_outcome()), .mutations = {}});
    case OperationKind::Delete:
      log_.info("sandbox deleted", {{"operation", "delete"}});
      facts.emplace_back(change::MarkDeleted{id(), journal_.now()});
      return decide_and_record(
          command::Succeed{},
          {.execs = execs_.end_all(cancelled_outcome()), .mutations = std::move(facts)},
          [this](const Result<>&) { deleted(); });
    case OperationKind::CleanUp:
      cleans_up_ = false;
      facts.emplace_back(change::SetOperation{id(), {}});
      return record({}, {.execs = {}, .mutations = std::move(facts)}, Urgency::GoesOn, {});
    case OperationKind::Halt:
      return halted();
    case OperationKind::Restart:
      return restarted();
    case OperationKind::Look:
      break;
  }
}

// Its proof may be a minute old: its entrypoint has run since.
void SandboxActor::became_live() {
  if (!services_.is_shutting_down) services_.isolation.sandbox_is_live(id());
}

void SandboxActor::deleted() {
  services_.isolation.forget(id());
  forget_spec();
  set_deadline();
}

void SandboxActor::failed(OperationKind kind, const OperationOutcome& outcome) {
  const OperationFailure& failure = outcome.result.error();
  if (kind == OperationKind::CleanUp) {
    log_.warn("clean-up of a failed create is tried again", {{"error", failure.message()}});
    return retry_later();
  }
  if (kind == OperationKind::Halt) {
    log_.warn("the container runs on; its stop is tried again", {{"error", failure.message()}});
    return retry_later();
  }
  if (kind == OperationKind::Look) {
    log_.warn("the container cannot be looked at; tried again", {{"error", failure.message()}});
    return retry_later();
  }
  if (kind == OperationKind::Restart) return restart_failed(failure);
  log_.warn("sandbox failed", {{"error", failure.message()}});
  if (kind == OperationKind::Resume && !outcome.has_cleaned_up) {
    log_.warn("the container of a failed resume may run until the sandbox is deleted");
  }
  cleans_up_ =
      kind == OperationKind::Create && (!outcome.has_cleaned_up || was_made_since_teardown_);
  decide_and_record(command::Refuse{{.code = failure_code(life_.state),
                                     .message = failure.message() + outcome.disk_remark}},
                    {.execs = execs_.end_unsent(cancelled_outcome()), .mutations = stored(facts_)});
  work();
  // Whatever became of its container under the operation, execs may have gone with it.
  look_unless_connected();
}

void SandboxActor::retry_later() {
  services_.tasks.spawn("sandbox " + id() + " retry", work_after(retry_pause_.wait()));
}

asio::awaitable<void> SandboxActor::work_after(asio::awaitable<bool> pause) {
  co_await std::move(pause);
  if (services_.is_shutting_down) co_return uncount_create();
  work();
}

}  // namespace agbox
