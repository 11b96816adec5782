// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/work.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/overloaded.h"

namespace agbox {
namespace {

using Attempt = work::Create::Attempt;

constexpr const char* kMaterialize = "materialize";  // the phase of a create
constexpr const char* kRestart = "restart";          // the phase of a restart
constexpr const char* kCommandFinished = "command_finished";
constexpr const char* kNoAnswer =
    "its guest does not answer, so its isolation cannot be verified from inside";
constexpr const char* kUnverified =
    "its guest has not answered for 30 s, so its isolation is verified from outside only";

// Of the operation that is in progress in this state.
const char* failure_code(Lifecycle state) {
  switch (state) {
    case Lifecycle::Resuming:
      return "SANDBOX_RESUME_FAILED";
    case Lifecycle::Stopping:
      return "SANDBOX_STOP_FAILED";
    case Lifecycle::Deleting:
      return "SANDBOX_DELETE_FAILED";
    case Lifecycle::Creating:
    case Lifecycle::Ready:
    case Lifecycle::Stopped:
    case Lifecycle::Failed:
    case Lifecycle::Deleted:
      break;
  }
  return "SANDBOX_CREATE_FAILED";
}

class Table {
 public:
  Table(WorkState state, const Surroundings& now) : now_(now), state_(std::move(state)) {}

  WorkTransition result() && { return {.state = std::move(state_), .step = std::move(step_)}; }

  // --- its beginning, in this run of the daemon ---

  void operator()(const input::Accept&) {
    // It begins as soon as it is accepted, so both are one change.
    happened(event::Accepted{});
    happened(event::Preparing{kMaterialize});
    record().has_new_secret = true;
  }

  void operator()(const input::Begin&) { settle(); }

  void operator()(const input::Recover&) {
    if (state() == Lifecycle::Creating && state_.attempts >= kMostAttempts) {
      fail({.code = failure_code(state()),
            .message = "the daemon ended " + std::to_string(kMostAttempts) +
                       " times while it created this sandbox; see its log"});
      state_.work = work::CleanUp{};
    } else if (state() == Lifecycle::Resuming) {
      // It starts the container again, so it needs another secret.
      ++state_.attempts;
      record().has_new_secret = true;
      record().has_operation = true;
    } else if (state() == Lifecycle::Stopping) {
      // An exec that was being accepted when the stop was decided is cancelled only now.
      record().execs = ExecsChange::Cancel;
    }
    await_answer();
    settle();
  }

  void operator()(const input::RecoverUnreadable& unreadable) {
    const Failure& failure = unreadable.failure;
    switch (state()) {
      case Lifecycle::Creating:
        happen(command::Refuse{failure});
        state_.work = work::CleanUp{};
        break;
      case Lifecycle::Resuming:
        happen(command::Refuse{failure});
        state_.work = work::Halt{};
        break;
      case Lifecycle::Stopped:
        happen(command::LosePrimary{failure});
        state_.work = work::Halt{};
        break;
      case Lifecycle::Ready:
      case Lifecycle::Stopping:
        halt_running(failure);
        break;
      case Lifecycle::Failed:  // perhaps by an earlier run, which ended before it could do more
        if (!cleans_up(state_)) state_.work = work::Halt{};
        break;
      case Lifecycle::Deleting:
      case Lifecycle::Deleted:
        break;
    }
    settle();
  }

  // --- commands ---

  void operator()(const input::Stop& stop) {
    if (!happen(command::Stop{stop.reason})) return;
    begin(work::Stop{});
    record().execs = ExecsChange::Cancel;
    settle();
  }

  void operator()(const input::Resume& resume) {
    // Execs that outlived a failed stop end with the container, which is started again.
    if (now_.has_execs) record().execs = ExecsChange::Cancel;
    happen(command::Resume{resume.has_containers});
    begin(work::Resume{});
    record().has_new_secret = true;
    settle();
  }

  void operator()(const input::Delete& request) {
    if (happen(command::Delete{request.reason})) begin(work::Delete{});
    settle();
  }

  // --- operations ---

  void operator()(const input::Progress& progress) {
    if (state() == Lifecycle::Creating) happen(command::Prepare{progress.phase});
  }

  void operator()(const input::Ended& ended) {
    const auto* running = std::get_if<activity::Running>(&state_.activity);
    AGBOX_CHECK(running != nullptr, "only what runs can end");
    const OperationKind kind = running->kind;
    state_.activity = activity::None{};
    if (now_.is_shutting_down) return uncount_attempt();
    if (wanted_operation(state_.work) != kind) return settle();
    switch (ended.end) {
      case OperationEnd::Done:
        return done(kind, ended);
      case OperationEnd::Refused:
      case OperationEnd::Lost:
        return refused(kind, ended);
      case OperationEnd::Retry:
      case OperationEnd::Cancelled:
        return not_reached(kind);
    }
  }

  void operator()(const input::BackoffOver&) {
    AGBOX_CHECK(std::holds_alternative<activity::BackingOff>(state_.activity),
                "only a backoff that has begun is over");
    state_.activity = activity::None{};
    if (now_.is_shutting_down) return uncount_attempt();
    settle();
  }

  // --- the container that should run ---

  void operator()(const input::GuestConnected&) {
    if (state() == Lifecycle::Stopping) {
      step_.takes_guest = true;
    } else if (may_have_guest()) {
      step_.takes_guest = true;
      if (state_.isolation.unanswered_since) step_.verify_in = std::chrono::milliseconds(0);
      if (is<work::Inspect>()) state_.work = work::Idle{};
      settle();
    }
  }

  // The engine may not know yet that the container has ended when the guest's connection does; its
  // own event is then the next input.
  void operator()(const input::GuestLost&) {
    if (now_.is_guest_connected) return;
    await_answer();
    recheck();
  }

  // A guest that is connected does not vouch for its container: the engine may have taken the
  // network from it.
  void operator()(const input::RecheckContainer&) { recheck(); }

  // --- its isolation ---

  void operator()(const input::IsolationFailed& failed) {
    // One that is being started verifies it before anything runs.
    if (!is_up(state_)) return;
    IsolationState& isolation = state_.isolation;
    isolation.problem = failed.why;
    answered();
    const auto wait = verify_later();
    if (std::exchange(isolation.released, Released::No) != Released::No) {
      isolation.earliest_unpause = now_.now + wait;
    }
    const bool is_paused = isolation.paused != Paused::No;
    if (now_.pauses_unisolated) {
      if (!is_paused) isolation.paused = Paused::Begun;
      if (!is<work::Pause>()) state_.work = work::Pause{.may_be_done = is_paused};
    } else if (is_paused) {  // by an earlier run of the daemon, with another configuration
      unpause();
    } else if (is_idle_or_inspects()) {
      return inspect();  // perhaps its container is not what it was
    }
    settle();
  }

  void operator()(const input::IsolationHolds& holds) {
    IsolationState& isolation = state_.isolation;
    if (!is_up(state_)) return;
    if (isolation.problem.empty()) return holds.from_inside ? answered() : await_answer();
    if (isolation.paused != Paused::No) {
      if (now_.now < isolation.earliest_unpause) return;  // the timer brings it here again
      unpause();
      return settle();
    }
    if (holds.from_inside) {
      isolation = {};
      return;
    }
    if (isolation.released == Released::Unanswered && now_.pauses_unisolated) {
      return (*this)(input::IsolationFailed{kNoAnswer});
    }
    if (isolation.released == Released::Unpaused) isolation.released = Released::Unanswered;
    verify_later();
  }

  void operator()(const input::EngineBack&) {
    step_.resets_backoff = true;
    if (state() == Lifecycle::Stopped) inspect();
    if (!now_.is_guest_connected) recheck();
    if (is<work::AwaitRestart>()) state_.work = work::Restart{};
    settle();
  }

  void operator()(const input::RestartDue&) {
    if (!is<work::AwaitRestart>()) return;
    state_.work = work::Restart{};
    settle();
  }

 private:
  Lifecycle state() const { return state_.lifecycle.state; }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(state_.work);
  }
  using Paused = IsolationState::Paused;
  using Released = IsolationState::Released;
  bool is_idle_or_inspects() const { return is<work::Idle>() || is<work::Inspect>(); }
  // While it is down, what connects is the guest of a start in progress, which handles it. After a
  // stop or a delete that the engine refused, the container may run on with its execs.
  bool may_have_guest() const {
    return is_up(state_) || (state() == Lifecycle::Failed && now_.has_execs);
  }

  Record& record() {
    if (!step_.record) step_.record.emplace();
    return *step_.record;
  }

  // False if the command changes nothing.
  bool happen(const LifecycleCommand& command) {
    const auto events = decide({}, state_.lifecycle, command);
    AGBOX_CHECK(events.has_value(), "the state allows what happens");
    for (const LifecycleEvent& event : *events) happened(event);
    return !events->empty();
  }

  void happened(const LifecycleEvent& event) {
    const Lifecycle before = state();
    state_.lifecycle = apply(std::move(state_.lifecycle), event);
    record().events.push_back(event);
    // No series of crashes outlives a stop or a resume.
    if (state() != before) state_.crashes.reset();
  }

  void begin(Work work) {
    state_.work = std::move(work);
    state_.attempts = 1;
  }

  Failure failure_of(const input::Ended& ended) const {
    return {.code = ended.code.empty() ? failure_code(state()) : ended.code,
            .message = ended.message};
  }

  // The operation in progress has failed for good. Execs may have outlived it, or not.
  void fail(const Failure& failure) {
    happen(command::Refuse{failure});
    record().execs = ExecsChange::EndUnsent;
    record().has_objects = true;
    state_.work = work::Idle{};
    if (now_.has_execs && !now_.is_guest_connected) state_.work = work::Inspect{};
  }

  void halt_running(const Failure& failure) {
    if (now_.has_execs) {
      // Decided now, and reported once its container is stopped: its execs end before it does.
      state_.lifecycle = apply(std::move(state_.lifecycle), event::Failed{failure});
      state_.work = work::Halt{.unreported = failure};
      return;
    }
    if (state() == Lifecycle::Ready) {
      happen(command::LosePrimary{failure});
    } else {
      happen(command::Refuse{failure});
    }
    state_.work = work::Halt{};
  }

  // --- how operations end ---

  void done(OperationKind kind, const input::Ended& ended) {
    const bool is_teardown = kind == OperationKind::Delete || kind == OperationKind::CleanUp;
    if (is_teardown && ended.is_outdated) return settle();
    step_.resets_backoff = true;
    switch (kind) {
      case OperationKind::Create:
      case OperationKind::StartOver:
      case OperationKind::Resume:
        happen(command::Succeed{});
        state_.isolation = {};
        if (now_.has_execs) record().execs = ExecsChange::End;  // of the start before
        record().has_objects = true;
        record().then = Record::Then::IsLive;
        return keep_running();
      case OperationKind::UndoCreate:
        return create_failed(!ended.is_outdated);
      case OperationKind::UndoResume:
        return resume_failed();
      case OperationKind::Stop:
        happen(command::Succeed{});
        state_.isolation = {};
        record().execs = ExecsChange::End;
        state_.work = work::Idle{};
        return;
      case OperationKind::Delete:
        happen(command::Succeed{});
        state_.isolation = {};
        record().execs = ExecsChange::End;
        record().has_objects = true;
        record().then = Record::Then::IsDeleted;
        state_.work = work::Idle{};
        return;
      case OperationKind::CleanUp:
        record().has_objects = true;
        record().has_operation = true;
        state_.work = work::Idle{};
        return;
      case OperationKind::Halt:
        return halted();
      case OperationKind::Inspect:
        AGBOX_CHECK(ended.inspection.has_value(), "an inspection shows something");
        return inspected(*ended.inspection);
      case OperationKind::Restart:
        return ended.inspection ? inspected(*ended.inspection) : restarted();
      case OperationKind::Pause:
        if (ended.inspection) return inspected(*ended.inspection);
        return paused(ended.is_paused_by_others ? Paused::No : Paused::Yes);
      case OperationKind::Unpause:
        return unpaused();
    }
  }

  void refused(OperationKind kind, const input::Ended& ended) {
    switch (kind) {
      case OperationKind::Create:
      case OperationKind::StartOver:
        if (auto& create = std::get<work::Create>(state_.work); is_forgiven(ended, create)) {
          create.attempt = Attempt::Again;
          return start_again();
        }
        state_.work = work::UndoCreate{.failure = failure_of(ended)};
        return settle();
      case OperationKind::Resume: {
        auto& resume = std::get<work::Resume>(state_.work);
        if (is_forgiven(ended, resume)) return start_again();
        state_.work =
            work::UndoResume{.failure = failure_of(ended), .lost_starts = resume.lost_starts};
        return settle();
      }
      case OperationKind::UndoCreate:
        return create_failed(false);
      case OperationKind::UndoResume:
        return resume_failed();
      case OperationKind::Stop:
        if (auto& stop = std::get<work::Stop>(state_.work); stop.refusals < kStopRefusalsForgiven) {
          ++stop.refusals;
          return back_off();
        }
        [[fallthrough]];
      case OperationKind::Delete:
        fail(failure_of(ended));
        return settle();
      case OperationKind::Restart:  // a start that fails counts like an end
        if (!ended.code.empty()) {
          return lose(failure_of(ended), {.how = "it was not started again: " + ended.message});
        }
        wait_for_restart({.how = "it could not be started again: " + ended.message});
        return;
      case OperationKind::Pause:  // it runs on; the next verification that fails tries again
        return paused(Paused::No);
      case OperationKind::CleanUp:
      case OperationKind::Halt:
      case OperationKind::Inspect:
      case OperationKind::Unpause:
        return back_off();
    }
  }

  void not_reached(OperationKind kind) {
    if (kind == OperationKind::UndoCreate) return create_failed(false);
    if (kind == OperationKind::UndoResume) {
      // Perhaps it was not the resume that failed.
      state_.work = work::Resume{std::get<work::UndoResume>(state_.work).lost_starts};
    }
    if (kind == OperationKind::Pause) std::get<work::Pause>(state_.work).may_be_done = true;
    back_off();
  }

  template <class Start>
  static bool is_forgiven(const input::Ended& ended, Start& start) {
    if (ended.end != OperationEnd::Lost || start.lost_starts >= kLostStartsForgiven) return false;
    ++start.lost_starts;
    return true;
  }

  void start_again() {
    record().has_new_secret = true;
    back_off();
  }

  void create_failed(bool has_cleaned_up) {
    fail(std::get<work::UndoCreate>(state_.work).failure);
    if (!has_cleaned_up) state_.work = work::CleanUp{};
    settle();
  }

  void resume_failed() {
    fail(std::get<work::UndoResume>(state_.work).failure);
    settle();
  }

  void halted() {
    if (const auto& failure = std::get<work::Halt>(state_.work).unreported) {
      happened(event::Failed{*failure});
    }
    state_.isolation = {};
    record().execs = ExecsChange::End;
    record().loss =
        ContainerLoss{.how = "it was stopped, because the sandbox's record cannot be read"};
    state_.work = work::Idle{};
  }

  // An attempt that a shutdown interrupts is repeated by the next run of the daemon.
  void uncount_attempt() {
    if (state() != Lifecycle::Creating) return;
    const auto* create = std::get_if<work::Create>(&state_.work);
    if (create != nullptr && create->attempt == Attempt::Recovered) return;
    state_.work = work::Create{.attempt = Attempt::Recovered};
    --state_.attempts;
    step_.uncounts_attempt = true;
  }

  // --- the container that should run ---

  void recheck() {
    if (auto* pause = std::get_if<work::Pause>(&state_.work)) pause->inspects = true;
    if (auto* unpause = std::get_if<work::Unpause>(&state_.work)) unpause->inspects = true;
    if (may_have_guest() && is_idle_or_inspects()) inspect();
  }

  void inspect() {
    state_.work = work::Inspect{.again = is_running(OperationKind::Inspect)};
    settle();
  }

  void inspected(const SandboxInspection& inspection) {
    const auto* work = std::get_if<work::Inspect>(&state_.work);
    const bool again = work != nullptr && work->again;
    if (state() == Lifecycle::Failed && inspection.loss) {
      record().execs = ExecsChange::End;
      record().loss = inspection.loss;
      state_.work = work::Idle{};
      return;
    }
    const RestartPlan plan = restart_plan(state(), inspection.seen);
    switch (plan.step) {
      case RestartStep::Fail:
        return lose(plan.failure, inspection.loss.value_or(ContainerLoss{
                                      .how = "it was stopped, because " + plan.failure.message}));
      case RestartStep::Restart:
        AGBOX_CHECK(inspection.loss.has_value(), "a container that is started again was lost");
        if (wait_for_restart(*inspection.loss)) {
          state_.restarts.last_exit = exit_text(*inspection.loss);
          happened(event::Preparing{.phase = kRestart, .message = state_.restarts.last_exit});
          record().execs = ExecsChange::EndForRestart;
          record().loss = inspection.loss;
        }
        return;
      case RestartStep::Finish:
        AGBOX_CHECK(inspection.loss.has_value(), "a container whose command is done has ended");
        return finish(*inspection.loss);
      case RestartStep::Stay:
      case RestartStep::Adopt:
        break;
    }
    state_.work = work::Idle{};
    if (again) state_.work = work::Inspect{};
    const bool is_unpaused = !state_.isolation.problem.empty() &&
                             state_.isolation.paused != Paused::No &&
                             inspection.seen.primary == PrimarySeen::Running;
    if (is_unpaused && now_.pauses_unisolated) state_.work = work::Pause{.may_be_done = true};
    settle();
  }

  // False if it has ended too often to be started again.
  bool wait_for_restart(const ContainerLoss& loss) {
    state_.isolation = {};  // nothing runs, and a restart verifies it
    const auto wait = state_.crashes.ended(now_.now);
    if (!wait) {
      lose(crash_failure(loss), loss);
      return false;
    }
    state_.work = work::AwaitRestart{};
    step_.restart_in = *wait;
    return true;
  }

  // Its execs were lost with the container; a resume runs the command again.
  void finish(const ContainerLoss& loss) {
    state_.restarts.last_exit = exit_text(loss);
    happen(command::Stop{kCommandFinished});
    begin(work::Stop{});
    record().execs = ExecsChange::End;
    record().loss = loss;
    settle();
  }

  void lose(const Failure& failure, const ContainerLoss& loss) {
    if (loss.exit_code) state_.restarts.last_exit = exit_text(loss);
    happen(command::LosePrimary{failure});
    state_.isolation = {};
    record().execs = ExecsChange::End;
    record().loss = loss;
    state_.work = work::Idle{};
    settle();
  }

  void restarted() {
    state_.crashes.started(now_.now);
    happened(event::Ready{});
    ++state_.restarts.count;
    record().has_objects = true;
    record().then = Record::Then::IsRestarted;
    keep_running();
  }

  // A guest that is connected reports its end by its loss; without one only the engine knows.
  void keep_running(bool inspects = false) {
    state_.work = work::Idle{};
    if (inspects || !now_.is_guest_connected) state_.work = work::Inspect{};
    if (!now_.is_guest_connected) await_answer();
    settle();
  }

  // --- the guest that does not answer ---

  void await_answer() {
    IsolationState& isolation = state_.isolation;
    if (!is_up(state_) || !isolation.problem.empty()) return;
    if (!isolation.unanswered_since) isolation.unanswered_since = now_.now;
    const auto waited =
        std::chrono::floor<std::chrono::milliseconds>(now_.now - *isolation.unanswered_since);
    const bool is_unverified = waited >= kUnverifiedAfter;
    if (is_unverified) isolation.unverified = kUnverified;
    step_.verify_in = is_unverified ? kUnverifiedAfter : kUnverifiedAfter - waited;
  }

  void answered() {
    state_.isolation.unanswered_since.reset();
    state_.isolation.unverified.clear();
  }

  // --- the isolation that does not hold ---

  std::chrono::milliseconds verify_later() {
    const unsigned doublings = std::min(state_.isolation.failures++, 16U);
    step_.verify_in =
        std::min(kFirstVerificationWait * (1U << doublings), kLongestVerificationWait);
    return *step_.verify_in;
  }

  void unpause() {
    if (is<work::Unpause>()) return;
    const auto* pause = std::get_if<work::Pause>(&state_.work);
    const bool inspects = is<work::Inspect>() || (pause != nullptr && pause->inspects);
    state_.work = work::Unpause{.inspects = inspects};
  }

  void paused(Paused paused) {
    state_.isolation.paused = paused;
    keep_running(std::get<work::Pause>(state_.work).inspects);
  }

  void unpaused() {
    state_.isolation.paused = Paused::No;
    state_.isolation.released = Released::Unpaused;
    step_.verify_in = std::chrono::milliseconds(0);
    keep_running(std::get<work::Unpause>(state_.work).inspects);
  }

  // --- which operation runs ---

  bool is_running(OperationKind kind) const {
    const auto* running = std::get_if<activity::Running>(&state_.activity);
    return running != nullptr && running->kind == kind;
  }

  void back_off() {
    state_.activity = activity::BackingOff{};
    step_.backoff = WorkStep::Backoff::Begin;
  }

  // Starts what the work asks for, or cancels what it no longer asks for.
  void settle() {
    if (now_.is_shutting_down) return;  // the next run of the daemon continues
    if (state() == Lifecycle::Failed && is<work::Inspect>() && !now_.has_execs) {
      state_.work = work::Idle{};  // it was for their sake
    }
    const auto wanted = wanted_operation(state_.work);
    if (const auto* running = std::get_if<activity::Running>(&state_.activity)) {
      // Never two at once: the old one is cancelled, and its end brings us here again.
      step_.cancels = running->kind != wanted;
      return;
    }
    if (!wanted) return;
    if (std::holds_alternative<activity::BackingOff>(state_.activity)) {
      step_.backoff = WorkStep::Backoff::End;  // which brings us here again
      return;
    }
    if (auto* create = std::get_if<work::Create>(&state_.work);
        create != nullptr && create->attempt == Attempt::Recovered) {
      if (!now_.has_engine) return;  // nothing is begun, and not counted, before it is back
      create->attempt = Attempt::Again;
      ++state_.attempts;
      happen(command::Prepare{kMaterialize});
      record().has_new_secret = true;
    }
    state_.activity = activity::Running{*wanted};
    step_.start = wanted;
  }

  const Surroundings& now_;
  WorkState state_;
  WorkStep step_;
};

}  // namespace

WorkState new_work() {
  return {.lifecycle = {}, .work = work::Create{}};
}

WorkState restored_work(LifecycleStatus lifecycle, bool cleans_up, std::uint32_t attempts,
                        IsolationState isolation, RestartState restarts, bool is_restarting) {
  if (lifecycle.state != Lifecycle::Ready) isolation.problem.clear();
  WorkState state{.lifecycle = std::move(lifecycle),
                  .work = work::Idle{},
                  .attempts = attempts,
                  .isolation = std::move(isolation),
                  .restarts = std::move(restarts)};
  switch (state.lifecycle.state) {
    case Lifecycle::Creating:
      state.work = work::Create{.attempt = Attempt::Recovered};
      break;
    case Lifecycle::Resuming:
      state.work = work::Resume{};
      break;
    case Lifecycle::Stopping:
      state.work = work::Stop{};
      break;
    case Lifecycle::Deleting:
      state.work = work::Delete{};
      break;
    case Lifecycle::Failed:
      if (cleans_up) state.work = work::CleanUp{};
      break;
    case Lifecycle::Ready:  // otherwise inspected when the engine is there
      if (is_restarting) state.work = work::Restart{};
      break;
    case Lifecycle::Stopped:
    case Lifecycle::Deleted:
      break;
  }
  return state;
}

bool cleans_up(const WorkState& state) {
  return std::holds_alternative<work::CleanUp>(state.work);
}

bool is_restarting(const WorkState& state) {
  return std::holds_alternative<work::AwaitRestart>(state.work) ||
         std::holds_alternative<work::Restart>(state.work);
}

bool is_up(const WorkState& state) {
  return state.lifecycle.state == Lifecycle::Ready && !is_restarting(state);
}

std::optional<OperationKind> wanted_operation(const Work& work) {
  using Wanted = std::optional<OperationKind>;
  return std::visit(Overloaded{
                        [](const work::Idle&) { return Wanted(); },
                        [](const work::Create& create) {
                          // What an interrupted attempt left is not trusted.
                          return Wanted(create.attempt == Attempt::First
                                            ? OperationKind::Create
                                            : OperationKind::StartOver);
                        },
                        [](const work::UndoCreate&) { return Wanted(OperationKind::UndoCreate); },
                        [](const work::Resume&) { return Wanted(OperationKind::Resume); },
                        [](const work::UndoResume&) { return Wanted(OperationKind::UndoResume); },
                        [](const work::Stop&) { return Wanted(OperationKind::Stop); },
                        [](const work::Delete&) { return Wanted(OperationKind::Delete); },
                        [](const work::CleanUp&) { return Wanted(OperationKind::CleanUp); },
                        [](const work::Halt&) { return Wanted(OperationKind::Halt); },
                        [](const work::Inspect&) { return Wanted(OperationKind::Inspect); },
                        [](const work::AwaitRestart&) { return Wanted(); },
                        [](const work::Restart&) { return Wanted(OperationKind::Restart); },
                        [](const work::Pause&) { return Wanted(OperationKind::Pause); },
                        [](const work::Unpause&) { return Wanted(OperationKind::Unpause); },
                    },
                    work);
}

WorkTransition advance(WorkState state, const WorkInput& input, const Surroundings& now) {
  const bool awaited_restart = std::holds_alternative<work::AwaitRestart>(state.work);
  const bool was_restarting = is_restarting(state);
  const IsolationState before = state.isolation;
  const RestartState restarts_before = state.restarts;
  Table table(std::move(state), now);
  std::visit(table, input);
  WorkTransition transition = std::move(table).result();
  const bool awaits_restart = std::holds_alternative<work::AwaitRestart>(transition.state.work);
  transition.step.clears_restart = awaited_restart && !awaits_restart;
  IsolationState& after = transition.state.isolation;
  // What does not run any more has no problem, but may still be paused.
  if (transition.state.lifecycle.state != Lifecycle::Ready) after = {.paused = after.paused};
  const auto is_due = [](const IsolationState& isolation) {
    return !isolation.problem.empty() || isolation.unanswered_since.has_value();
  };
  transition.step.clears_verification = is_due(before) && !is_due(after);
  if (after.problem != before.problem || after.paused != before.paused ||
      after.unverified != before.unverified) {
    if (!transition.step.record) transition.step.record.emplace();
    transition.step.record->has_isolation = true;
  }
  if (transition.state.restarts != restarts_before ||
      is_restarting(transition.state) != was_restarting) {
    if (!transition.step.record) transition.step.record.emplace();
    transition.step.record->has_restarts = true;
  }
  return transition;
}

}  // namespace agbox
