// SPDX-License-Identifier: Apache-2.0
#include "control/exec/sandbox_execs.h"

#include <algorithm>
#include <utility>

#include "async/cancellation.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "control/companion/companion_guest.h"
#include "control/exec/exec_environment.h"
#include "control/exec/running_execs.h"
#include "model/reasons.h"
#include "model/spec/maxima.h"
#include "store/decode.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

constexpr auto kLongestWaitForRestart = 30s;

std::unexpected<Error> too_many(const std::string& what, std::size_t most,
                                const std::string& remedy) {
  return fail(reason::kResourceExhausted,
              what + ": at most " + std::to_string(most) + " are possible; " + remedy);
}

const google::protobuf::Timestamp& time_of(const Mutation& event) {
  return std::get<change::AppendEvent>(event).event.occurred_at();
}

void log_end(const Logger& log, const ExecOutcome& outcome) {
  switch (outcome.state) {
    case v1::EXEC_STATE_FINISHED:
      return log.info("exec finished", {{"exit_code", outcome.exit_code}});
    case v1::EXEC_STATE_CANCELLED:
      return log.info("exec cancelled");
    default:
      return log.warn("exec failed",
                      {{"exit_code", outcome.exit_code}, {"error", outcome.error_message}});
  }
}

}  // namespace

SandboxExecs::SandboxExecs(ActorServices& services, Sandbox sandbox, Logger log)
    : services_(services),
      journal_(sandbox.journal),
      facts_(sandbox.facts),
      place_(sandbox.place),
      guest_of_companion_(std::move(sandbox.guest_of_companion)),
      check_takes_execs_(std::move(sandbox.check_takes_execs)),
      on_change_(std::move(sandbox.on_change)),
      log_(std::move(log)),
      changed_(services.loop.io().get_executor()) {}

SandboxExecs::~SandboxExecs() {
  for (const auto& [exec_id, exec] : execs_) services_.execs.leave(exec_id);
}

void SandboxExecs::restore(std::vector<ExecRecord> running) {
  for (ExecRecord& stored : running) {
    const std::string exec_id = stored.request.exec_id();
    const std::size_t bytes = stored.request.ByteSizeLong();
    CompanionGuest* const guest = guest_of_companion_(stored.request.container());
    RunningExec exec{.guest = guest,
                     .shown = {},
                     .record = stored.record,
                     .bytes = bytes,
                     .may_run = guest == nullptr || guest->may_have_execs()};
    exec.shown = std::make_shared<const ExecRecord>(std::move(stored));
    begin_timeout(exec);
    enter(exec_id, std::move(exec));
  }
  set_timeout_deadline();
}

void SandboxExecs::enter(const std::string& exec_id, RunningExec exec) {
  services_.execs.enter(exec_id, this, exec.bytes);
  bytes_ += exec.bytes;
  execs_.emplace(exec_id, std::move(exec));
}

SandboxExecs::RunningExec* SandboxExecs::find(std::string_view exec_id) {
  const auto found = execs_.find(exec_id);
  return found == execs_.end() ? nullptr : &found->second;
}

void SandboxExecs::leave(const std::string& exec_id) {
  const auto found = execs_.find(exec_id);
  bytes_ -= found->second.bytes;
  execs_.erase(found);
  services_.execs.leave(exec_id);
  set_wait_deadline();
  set_timeout_deadline();
  changed_.notify();
  on_change_();
}

std::shared_ptr<const ExecRecord> SandboxExecs::shown(std::string_view exec_id) const {
  const auto found = execs_.find(exec_id);
  return found == execs_.end() ? nullptr : found->second.shown;
}

std::vector<std::shared_ptr<const ExecRecord>> SandboxExecs::all_shown() const {
  std::vector<std::shared_ptr<const ExecRecord>> all;
  for (const auto& [exec_id, exec] : execs_) {
    if (exec.shown) all.push_back(exec.shown);
  }
  return all;
}

EventSubscription::Snapshot SandboxExecs::snapshot() const {
  EventSubscription::Snapshot events;
  for (const auto& exec : all_shown()) {
    v1::SandboxEvent event = started_event(exec->request.exec_id());
    event.set_event_id(journal_.sandbox_id() + "-snapshot-" + exec->request.exec_id());
    event.set_sequence(newest_sequence());
    event.set_sandbox_id(journal_.sandbox_id());
    event.set_sandbox_state(journal_.handle().state());
    *event.mutable_occurred_at() = to_timestamp(journal_.now());
    std::string bytes = event.SerializeAsString();
    events.push_back(std::make_shared<const StoredEvent>(
        StoredEvent{.event = std::move(event), .bytes = std::move(bytes)}));
  }
  return events;
}

std::shared_ptr<const OnExecEnd> SandboxExecs::watch(std::string_view exec_id, OnExecEnd on_end) {
  RunningExec* exec = find(exec_id);
  AGBOX_CHECK(exec != nullptr, "only a running exec can be watched");
  std::erase_if(exec->watchers, [](const auto& watcher) { return watcher.expired(); });
  auto watcher = std::make_shared<const OnExecEnd>(std::move(on_end));
  exec->watchers.push_back(watcher);
  return watcher;
}

// --- create ---

SandboxPlace& SandboxExecs::place_of(const CompanionGuest* guest) const {
  return guest == nullptr ? place_ : guest->place();
}

bool SandboxExecs::is_reachable(const CompanionGuest* guest) const {
  return guest == nullptr ? !is_held_ && place_.is_connected() : guest->is_ready();
}

Result<> SandboxExecs::check_maxima(const ExecRequest& spec, const CompanionGuest* guest) const {
  const char* const wait = "wait until some of them end, or cancel some";
  if (execs_.size() >= maxima::kExecsPerSandbox) {
    return too_many("running execs of sandbox " + journal_.sandbox_id(), maxima::kExecsPerSandbox,
                    wait);
  }
  if (services_.execs.count() >= maxima::kExecs) {
    return too_many("running execs of all sandboxes", maxima::kExecs, wait);
  }
  if (bytes_ + spec.bytes > maxima::kExecBytesPerSandbox) {
    return too_many("bytes of the requests of running execs of sandbox " + journal_.sandbox_id(),
                    maxima::kExecBytesPerSandbox, wait);
  }
  if (services_.execs.bytes() + spec.bytes > maxima::kAllExecBytes) {
    return too_many("bytes of the requests of running execs of all sandboxes",
                    maxima::kAllExecBytes, wait);
  }
  // A guest that is disconnected, or has not started the workload yet, gets it later; one that does
  // not read may never get it.
  return is_reachable(guest) ? place_of(guest).takes_execs() : Result<>();
}

asio::awaitable<Result<v1::CreateExecResponse>> SandboxExecs::create(ExecRequest spec) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  const std::string exec_id = spec.request.exec_id();
  CompanionGuest* const guest = guest_of_companion_(spec.request.container());
  for (const std::string& variable : environment_of(guest, {})) spec.bytes += variable.size();
  if (spec.bytes > maxima::kExecBytes) {
    co_return too_many(
        "bytes of an exec's command and environment, HOME and USER of the sandbox included",
        maxima::kExecBytes, "use shorter ones");
  }
  AGBOX_CO_TRY_VOID(check_maxima(spec, guest));
  SandboxPlace& place = place_of(guest);
  if (needs_current_guest(spec.request) && place.is_connected() && !place.guest_is_current()) {
    co_return fail(reason::kGuestTooOld, guest_too_old(journal_.sandbox_id()),
                   {{"sandbox_id", journal_.sandbox_id()}});
  }
  enter(exec_id, {.guest = guest, .shown = {}, .record = {}, .bytes = spec.bytes});
  on_change_();
  auto output = co_await record_start(exec_id, std::move(spec.request));
  if (!output) {
    co_await place.discard_output(exec_id);
    leave(exec_id);
    co_return std::unexpected(std::move(output.error()));
  }
  AGBOX_FAILPOINT("exec.commit.after");
  // It is on disk, so it runs as soon as the guest has it; until then a restarted daemon continues
  // from here. The command starts while the reply is being sent.
  if (no_more_) {
    place.close_output(exec_id);
    end_unstarted(exec_id, *no_more_);
  } else {
    co_await send(exec_id);
  }
  v1::CreateExecResponse response;
  response.set_exec_id(exec_id);
  response.set_stdout_log_path(std::move(output->stdout_path));
  response.set_stderr_log_path(std::move(output->stderr_path));
  co_return response;
}

asio::awaitable<Result<OutputPaths>> SandboxExecs::record_start(std::string exec_id,
                                                                v1::CreateExecRequest request) {
  AGBOX_CO_TRY(output,
               co_await place_of(*find(exec_id)).create_output(facts_.created_with, exec_id));
  // It may have been stopped while the files were created.
  if (const auto taken = check_takes_execs_(); !taken) {
    AGBOX_CO_TRY_VOID(co_await journal_.refuse(taken.error()).wait());
  }
  auto started = std::make_shared<ExecRecord>(ExecRecord{.sandbox_id = journal_.sandbox_id(),
                                                         .state = v1::EXEC_STATE_RUNNING,
                                                         .request = std::move(request),
                                                         .record = {}});
  store::v1::Exec& record = started->record;
  record.set_output_root(output.root);
  record.set_stdout_log_path(output.stdout_path);
  record.set_stderr_log_path(output.stderr_path);
  Mutation event = journal_.entry(started_event(exec_id));
  *record.mutable_started_at() = time_of(event);
  if (timeout_of(started->request)) {
    *record.mutable_accepted() = encode_moment(services_.clock.now());
  }
  find(exec_id)->record = record;
  auto show = [this, exec_id, started] {
    find(exec_id)->shown = started;
    begin_timeout(*find(exec_id));
    set_timeout_deadline();
    changed_.notify();
    log_.with({"exec_id", exec_id}).info("exec started");
  };
  AGBOX_FAILPOINT("exec.commit.before");
  AGBOX_CO_TRY_VOID(co_await journal_
                        .append({change::CreateExec{started->request, record}, std::move(event)},
                                Urgency::NewWork, std::move(show))
                        .wait());
  co_return output;
}

asio::awaitable<void> SandboxExecs::wait_until_decided(std::string exec_id) {
  const auto is_decided = [this, &exec_id] {
    const RunningExec* exec = find(exec_id);
    return exec == nullptr || exec->shown;
  };
  co_await changed_.wait(is_decided, Condition::Deadline::max());
}

// --- cancel ---

asio::awaitable<Result<>> SandboxExecs::cancel(std::string exec_id) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  RunningExec* exec = find(exec_id);
  AGBOX_CHECK(exec != nullptr && exec->shown, "only an exec that is shown can be cancelled");
  if (exec->is_ending || exec->record.cancel_requested()) {
    AGBOX_CO_TRY_VOID(co_await journal_.append_nothing().wait());
    // An exec cannot end twice; a cancel during its end gets its reply when the end is on disk.
    if (find(exec_id) != nullptr) co_return Result<>{};
    co_return std::unexpected(exec_already_terminal(exec_id));
  }
  exec->record.set_cancel_requested(true);
  AGBOX_FAILPOINT("exec.cancel_commit.before");
  AGBOX_CO_TRY_VOID(co_await store_record(exec_id, *exec).wait());
  AGBOX_FAILPOINT("exec.cancel_commit.after");
  const RunningExec* cancelled = find(exec_id);
  if (cancelled != nullptr && !cancelled->is_ending) send_cancel(exec_id);
  co_return Result<>{};
}

SandboxExecs::Part SandboxExecs::cancel_all() {
  no_more_ = cancelled_outcome();
  Part part;
  std::vector<std::pair<std::string, store::v1::Exec>> asked;
  for (auto& [exec_id, exec] : execs_) {
    // create() ends one that is still being accepted: the store may refuse it.
    if (!exec.shown || exec.is_ending) continue;
    exec.record.set_cancel_requested(true);
    part.mutations.emplace_back(change::UpdateExec{exec_id, v1::EXEC_STATE_RUNNING, exec.record});
    asked.emplace_back(exec_id, exec.record);
  }
  part.show = [this, asked = std::move(asked)] {
    for (const auto& [exec_id, record] : asked) {
      show_record(exec_id, record);
      if (!find(exec_id)->is_ending) send_cancel(exec_id);
    }
  };
  return part;
}

asio::awaitable<Result<>> SandboxExecs::wait_for_ends(std::chrono::steady_clock::time_point limit) {
  const auto is_recorded = [](const auto& exec) { return exec.second.record.has_started_at(); };
  const auto none_is_left = [&] { return std::ranges::none_of(execs_, is_recorded); };
  const bool have_ended = co_await changed_.wait(none_is_left, limit);
  if (!have_ended && co_await is_cancelled()) co_return fail(reason::kCancelled, "cancelled");
  co_return Result<>{};
}

void SandboxExecs::show_record(const std::string& exec_id, const store::v1::Exec& record) {
  RunningExec* running = find(exec_id);
  auto changed = std::make_shared<ExecRecord>(*running->shown);
  changed->record = record;
  running->shown = std::move(changed);
}

SandboxJournal::OnDisk SandboxExecs::store_record(const std::string& exec_id,
                                                  const RunningExec& exec) {
  auto show = [this, exec_id, record = exec.record] { show_record(exec_id, record); };
  return journal_.append({change::UpdateExec{exec_id, v1::EXEC_STATE_RUNNING, exec.record}},
                         Urgency::GoesOn, std::move(show));
}

// --- ends ---

// One that never ran and whose cancel was accepted is cancelled, whatever else prevents its start.
ExecOutcome SandboxExecs::outcome_unless_cancelled(const RunningExec& exec,
                                                   const ExecOutcome& outcome) {
  return !exec.may_run && exec.record.cancel_requested() ? cancelled_outcome() : outcome;
}

void SandboxExecs::add_end(const std::string& exec_id, RunningExec& exec,
                           const ExecOutcome& decided, std::vector<Mutation>& mutations) {
  exec.is_ending = true;
  const bool is_timeout = decided.state == v1::EXEC_STATE_CANCELLED && exec.record.timed_out();
  const ExecOutcome outcome =
      is_timeout ? timed_out_outcome(timeout_of(exec.shown->request).value_or(0s)) : decided;
  Mutation event = journal_.entry(ended_event(exec_id, outcome));
  exec.record.set_exit_code(outcome.exit_code);
  exec.record.set_error_code(outcome.error_code);
  exec.record.set_error_message(outcome.error_message);
  *exec.record.mutable_ended_at() = time_of(event);
  mutations.emplace_back(change::UpdateExec{exec_id, outcome.state, exec.record});
  mutations.push_back(std::move(event));
}

void SandboxExecs::show_end(const std::string& exec_id, const ExecOutcome& outcome) {
  log_end(log_.with({"exec_id", exec_id}), outcome);
  const auto watchers = std::move(find(exec_id)->watchers);
  leave(exec_id);
  for (const auto& watcher : watchers) {
    if (const auto on_end = watcher.lock()) (*on_end)();
  }
}

void SandboxExecs::end(const std::string& exec_id, const ExecOutcome& outcome) {
  std::vector<Mutation> mutations;
  add_end(exec_id, *find(exec_id), outcome, mutations);
  auto show = [this, exec_id, outcome, guest = find(exec_id)->guest] {
    AGBOX_FAILPOINT("exec.end_commit.after");
    show_end(exec_id, outcome);
    forget(exec_id, guest);
  };
  AGBOX_FAILPOINT("exec.end_commit.before");
  journal_.append(std::move(mutations), Urgency::GoesOn, std::move(show));
}

SandboxExecs::Part SandboxExecs::end_those(
    const ExecOutcome& outcome, const std::function<bool(const RunningExec& exec)>& is_meant) {
  Part all;
  std::vector<std::pair<std::string, ExecOutcome>> ended;
  std::vector<Unstarted> unstarted;
  for (auto& [exec_id, exec] : execs_) {
    // create() ends one that is still being accepted: the store may refuse it.
    if (!exec.shown || exec.is_ending || !is_meant(exec)) continue;
    const ExecOutcome own = outcome_unless_cancelled(exec, outcome);
    if (!exec.may_run) {
      unstarted.push_back({&place_of(exec), exec_id, exec.record, own.error_message});
    }
    add_end(exec_id, exec, own, all.mutations);
    ended.emplace_back(exec_id, own);
  }
  explain(std::move(unstarted));
  all.show = [this, ended] {
    for (const auto& [exec_id, own] : ended) show_end(exec_id, own);
  };
  return all;
}

bool SandboxExecs::has_any_of(const CompanionGuest& guest) const {
  return std::ranges::any_of(execs_, [&guest](const auto& exec) {
    return exec.second.guest == &guest && exec.second.shown && !exec.second.is_ending;
  });
}

bool SandboxExecs::runs(const std::string& exec_id, const CompanionGuest& guest) const {
  const auto found = execs_.find(exec_id);
  return found != execs_.end() && found->second.guest == &guest && !found->second.is_ending;
}

void SandboxExecs::end_sent_of(const CompanionGuest& guest, const ExecOutcome& outcome) {
  end_of(guest, outcome, /*may_run=*/true);
}

void SandboxExecs::end_unsent_of(const CompanionGuest& guest, const ExecOutcome& outcome) {
  end_of(guest, outcome, /*may_run=*/false);
}

void SandboxExecs::end_of(const CompanionGuest& guest, const ExecOutcome& outcome, bool may_run) {
  Part part = end_those(outcome, [&guest, may_run](const RunningExec& exec) {
    return exec.guest == &guest && exec.may_run == may_run;
  });
  if (part.mutations.empty()) return;
  AGBOX_FAILPOINT("exec.companion_end.before");
  journal_.append(std::move(part.mutations), Urgency::GoesOn, std::move(part.show));
}

SandboxExecs::Part SandboxExecs::end_all(const ExecOutcome& outcome) {
  no_more_ = outcome;
  return end_those(outcome, [](const RunningExec&) { return true; });
}

SandboxExecs::Part SandboxExecs::end_for_restart(const ExecOutcome& outcome) {
  is_held_ = true;
  Part part = end_those(
      outcome, [](const RunningExec& exec) { return exec.guest == nullptr && exec.may_run; });
  for (auto& [exec_id, exec] : execs_) {
    if (exec.guest == nullptr && exec.shown && !exec.is_ending)
      exec.waits_since = services_.clock.boot_now();
  }
  set_wait_deadline();
  return part;
}

// --- a restart of the container ---

void SandboxExecs::hold_restored() {
  is_held_ = true;
  for (auto& [exec_id, exec] : execs_) {
    if (exec.guest != nullptr) continue;
    exec.may_run = false;
    exec.waits_since = services_.clock.boot_now();
  }
  set_wait_deadline();
}

void SandboxExecs::wait_for_restart(RunningExec& exec) {
  if (!exec.waits_since) exec.waits_since = services_.clock.boot_now();
  set_wait_deadline();
}

void SandboxExecs::take_again() {
  no_more_.reset();
  is_held_ = false;
  for (auto& [exec_id, exec] : execs_) exec.waits_since.reset();
  set_wait_deadline();
}

void SandboxExecs::set_wait_deadline() {
  std::optional<BootTime> first;
  for (const auto& [exec_id, exec] : execs_) {
    if (!exec.waits_since || exec.is_ending) continue;
    if (!first || *exec.waits_since < *first) first = exec.waits_since;
  }
  if (!first) return services_.exec_waits.clear(journal_.sandbox_id());
  services_.exec_waits.set(journal_.sandbox_id(), *first + kLongestWaitForRestart);
}

void SandboxExecs::end_waits(const std::string& last_exit) {
  const BootTime now = services_.clock.boot_now();
  std::vector<std::string> over;
  for (const auto& [exec_id, exec] : execs_) {
    const bool waits = exec.waits_since && !exec.is_ending;
    if (waits && now - *exec.waits_since >= kLongestWaitForRestart) over.push_back(exec_id);
  }
  const ExecOutcome outcome = waited_outcome(last_exit);
  for (const std::string& exec_id : over) {
    end_unstarted(exec_id, outcome_unless_cancelled(*find(exec_id), outcome));
  }
  set_wait_deadline();
}

SandboxExecs::Part SandboxExecs::end_unsent(const ExecOutcome& outcome) {
  return end_those(outcome, [](const RunningExec& exec) { return !exec.may_run; });
}

}  // namespace agbox
