// SPDX-License-Identifier: Apache-2.0
#include "control/companion/companion_supervisor.h"

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <utility>
#include <variant>

#include "async/cancellation.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "model/reasons.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstCompanionRetryDelay = 100ms;
// Its processes can make the engine report changes as often as they like.
constexpr auto kInspectionGap = 20ms;
constexpr auto kLongestCompanionRetryDelay = std::chrono::milliseconds(30s);
// Codes of COMPANION_CONTAINER_FAILED.
constexpr const char* kNotStarted = "COMPANION_CONTAINER_FAILED";
constexpr const char* kNotRunning = "CONTAINER_NOT_RUNNING";
constexpr const char* kOutOfMemory = "CONTAINER_OOM";
constexpr const char* kUnhealthy = "CONTAINER_UNHEALTHY";

std::string with_output(std::string message, const std::string& label, const std::string& output) {
  return output.empty() ? message : message + "; " + label + ": " + output;
}

const char* name_of(CompanionSeen::Health health) {
  switch (health) {
    case CompanionSeen::Health::None:
      return "";
    case CompanionSeen::Health::Starting:
      return "starting";
    case CompanionSeen::Health::Healthy:
      return "healthy";
    case CompanionSeen::Health::Unhealthy:
      break;
  }
  return "unhealthy";
}

}  // namespace

CompanionSupervisor::CompanionSupervisor(Shared shared, CompanionFacts facts, const Logger& log)
    : shared_(shared),
      facts_(std::move(facts)),
      log_(log.with({"companion", facts_.name()})),
      retry_timer_(shared.services.loop.io().get_executor(), kFirstCompanionRetryDelay,
                   kLongestCompanionRetryDelay) {}

void CompanionSupervisor::prepare(CompanionBegin begin, Engine::Progress progress) {
  if (begin == CompanionBegin::Create) facts_.container = {};
  auto& known = *facts_.container.mutable_companion();
  if (begin != CompanionBegin::Adopt || known.state() == v1::COMPANION_STATE_UNSPECIFIED) {
    known.set_state(v1::COMPANION_STATE_STARTING);
  }
  progress_ = std::move(progress);
  health_ = CompanionSeen::Health::None;
  // The sandbox was ready before the container of this companion was created.
  const bool is_interrupted = begin == CompanionBegin::Adopt &&
                              known.state() == v1::COMPANION_STATE_STARTING &&
                              facts_.container.container_id().empty();
  may_create_ = begin == CompanionBegin::Create || is_interrupted;
  is_start_due_ = begin != CompanionBegin::Adopt;
  is_awaited_ = begin != CompanionBegin::Adopt && facts_.is_required();
  is_healthy_ = false;
  is_late_ = false;
  must_stop_ = false;
  last_wait_ = 0ms;
  failure_.reset();
  crashes_.reset();
  ready_not_before_ = {};
  started_at_ = std::chrono::steady_clock::now();
  hint();
  show();
}

asio::awaitable<void> CompanionSupervisor::run() {
  // It was never made, unless a daemon crashed at this point; then its labels say so.
  if (may_create_ && !co_await create()) co_return;
  while (true) {
    if (!co_await wait_out(inspect_not_before_ - std::chrono::steady_clock::now())) co_return;
    inspect_not_before_ = std::chrono::steady_clock::now() + kInspectionGap;
    hints_seen_ = hints_;
    if (std::exchange(must_stop_, false) && !co_await stop()) co_return;
    const auto seen = co_await until_answered<CompanionSeen>(
        [this] { return shared_.services.engine.inspect_companion(facts_); });
    if (co_await is_cancelled()) co_return;
    if (!seen) {
      if (!failed(kNotStarted, seen.error().message())) co_return;
      if (!co_await wait_for_hint()) co_return;
      continue;
    }
    if (seen->state == CompanionSeen::State::Running) is_start_due_ = false;
    const bool is_proven = !proven_start_.empty() && proven_start_ == seen->start_mark;
    const bool leads_engine = is_proven && seen->health == CompanionSeen::Health::Starting;
    set_health(leads_engine ? CompanionSeen::Health::Healthy : seen->health);
    const CompanionStep step = companion_plan({.seen = *seen,
                                               .may_create = may_create_,
                                               .is_start_due = is_start_due_,
                                               .is_proven_healthy = is_proven});
    if (!co_await act(step, *seen)) co_return;
  }
}

asio::awaitable<bool> CompanionSupervisor::act(CompanionStep step, const CompanionSeen& seen) {
  is_healthy_ = step == CompanionStep::Ready;
  switch (step) {
    case CompanionStep::Create:
      co_return co_await create();
    case CompanionStep::Start:
      co_return co_await start(Counts::AsStart);
    case CompanionStep::Restart:
      co_return co_await restart(seen);
    case CompanionStep::Reattach:
      co_return co_await stop();
    case CompanionStep::AwaitHealth:
      co_return co_await await_health(seen);
    case CompanionStep::Ready:
      co_return co_await become_ready();
    case CompanionStep::Unhealthy:
      if (!co_await unhealthy(title() + " is unhealthy", seen)) co_return false;
      co_return co_await wait_for_hint();
    case CompanionStep::Wait:
      if (is_awaited_) co_return failed(kNotRunning, title() + " is paused by another process");
      co_return co_await wait_for_hint();
    case CompanionStep::Lost:
      failed(kNotStarted, why_lost());
      co_return false;
  }
  die("a step of a companion that is none");
}

// With the reason of the create, which is stored.
std::string CompanionSupervisor::why_lost() const {
  constexpr std::string_view remedy = "; delete the sandbox and create it again";
  const std::string& stored = known().error_message();
  if (stored.ends_with(remedy)) return stored;
  if (!facts_.container.container_id().empty()) {
    return title() + " does not exist any more" + std::string(remedy);
  }
  return (stored.empty() ? title() + " was not created with its sandbox" : stored) +
         std::string(remedy);
}

asio::awaitable<bool> CompanionSupervisor::unhealthy(std::string what, const CompanionSeen& seen) {
  const auto printed = co_await until_answered<std::string>(
      [this] { return shared_.services.engine.companion_output(facts_); });
  if (co_await is_cancelled()) co_return false;
  if (known().state() == v1::COMPANION_STATE_READY) {
    // One whose health changes again and again is reported less and less often.
    const auto wait = crashes_.ended(shared_.services.clock.boot_now());
    ready_not_before_ = std::chrono::steady_clock::now() + wait.value_or(CrashWindow::kLongestWait);
  }
  what = with_output(std::move(what), "its check printed", printed_by_check(seen));
  co_return failed(kUnhealthy, with_output(what, "its output ends with", printed.value_or("")));
}

const std::string& CompanionSupervisor::printed_by_check(const CompanionSeen& seen) const {
  return seen.probe_output.empty() ? probe_output_ : seen.probe_output;
}

// --- create, start, stop ---

template <class T>
asio::awaitable<EngineResult<T>> CompanionSupervisor::until_answered(
    std::function<EngineAwaitable<T>()> call) {
  retry_timer_.reset();
  while (true) {
    auto answer = co_await call();
    if (answer || answer.error().is_definite()) co_return answer;
    if (co_await is_cancelled() || !co_await retry_timer_.wait()) {
      co_return engine_fail(EngineErrorKind::Cancelled, "cancelled");
    }
  }
}

// One attempt holds a turn among the starts, and not the wait between two.
EngineAwaitable<> CompanionSupervisor::in_turn(EngineAwaitable<> call) {
  const auto turn = co_await shared_.services.operations.starts.acquire();
  if (!turn) co_return engine_fail(EngineErrorKind::Cancelled, "cancelled");
  co_return co_await std::move(call);
}

EngineAwaitable<> CompanionSupervisor::make() {
  auto attachments = co_await guest_->prepare();
  if (!attachments) {
    const bool is_final = is_definite(attachments.error());
    co_return engine_fail(is_final ? EngineErrorKind::Refused : EngineErrorKind::Unavailable,
                          attachments.error().message());
  }
  co_return co_await shared_.services.engine.ensure_companion(facts_, std::move(*attachments));
}

asio::awaitable<bool> CompanionSupervisor::create() {
  const auto image = co_await until_answered<void>(
      [this] { return shared_.services.engine.ensure_companion_image(facts_, progress_); });
  if (co_await is_cancelled()) co_return false;
  if (!image) {
    may_create_ = false;
    failed(kNotStarted, title() + ": " + image.error().message());
    co_return false;
  }
  if (!co_await shared_.changed.wait(may_start_, Condition::Deadline::max())) co_return false;
  const auto made = co_await until_answered<void>([this] { return in_turn(make()); });
  if (co_await is_cancelled()) co_return false;
  may_create_ = false;
  if (!made) {
    failed(kNotStarted, title() + ": " + made.error().message());
    co_return false;
  }
  // A later daemon must not take it for a leftover.
  report(v1::EVENT_TYPE_UNSPECIFIED);
  co_return co_await start(Counts::AsStart);
}

asio::awaitable<bool> CompanionSupervisor::start(Counts counts) {
  if (!co_await shared_.changed.wait(may_start_, Condition::Deadline::max())) co_return false;
  if (!co_await shared_.services.isolation.at_last_in_place()) co_return false;
  guest_->container_ended("it was started again");
  // What it runs is the image's, from the first moment. The bridge may be new since the last start.
  EngineResult<> started;
  const auto verified = co_await shared_.services.isolation.verify_network(shared_.place);
  if (verified) {
    started = co_await until_answered<void>(
        [this] { return in_turn(shared_.services.engine.start_companion(facts_)); });
  } else {
    started = std::unexpected<EngineError>(verified.error());
  }
  if (co_await is_cancelled()) co_return false;
  if (!started) {
    const auto wait = crashes_.ended(shared_.services.clock.boot_now());
    if (!failed(kNotStarted, title() + " could not be started: " + started.error().message())) {
      co_return false;
    }
    co_return co_await wait_out(wait.value_or(CrashWindow::kLongestWait));
  }
  is_start_due_ = false;
  is_late_ = false;
  started_at_ = std::chrono::steady_clock::now();
  // After an outage it is ready once it has run for as long as was waited before its start: one
  // that ends again and again is not.
  ready_not_before_ = started_at_ + std::min<std::chrono::nanoseconds>(
                                        std::exchange(last_wait_, 0ms), CrashWindow::kLongEnough);
  crashes_.started(shared_.services.clock.boot_now());
  facts_.container.set_start_count(facts_.container.start_count() + 1);
  if (counts == Counts::AsRestart) {
    facts_.container.set_restart_count(facts_.container.restart_count() + 1);
    report(v1::EVENT_TYPE_UNSPECIFIED);
  }
  co_return true;
}

asio::awaitable<bool> CompanionSupervisor::restart(const CompanionSeen& seen) {
  const ContainerLoss loss = seen.loss.value_or(ContainerLoss{.how = "it ended"});
  const auto printed = co_await until_answered<std::string>(
      [this] { return shared_.services.engine.companion_output(facts_); });
  if (co_await is_cancelled()) co_return false;
  guest_->container_ended(loss.how);
  facts_.container.set_last_exit(exit_text(loss));
  const bool was_ready = known().state() == v1::COMPANION_STATE_READY;
  const char* const code = loss.is_out_of_memory ? kOutOfMemory
                           : was_ready           ? kNotRunning
                                                 : kNotStarted;
  const auto wait = crashes_.ended(shared_.services.clock.boot_now());
  if (!failed(code, with_output(title() + " ended: " + loss.how, "its output ends with",
                                printed.value_or("")))) {
    co_return false;
  }
  last_wait_ = wait.value_or(CrashWindow::kLongestWait);
  if (!co_await wait_out(last_wait_)) co_return false;
  co_return co_await start(Counts::AsRestart);
}

asio::awaitable<bool> CompanionSupervisor::stop() {
  const auto stopped = co_await until_answered<void>(
      [this] { return shared_.services.engine.stop_companion(facts_); });
  if (co_await is_cancelled()) co_return false;
  if (stopped) co_return true;
  if (is_awaited_)
    co_return failed(kNotRunning, title() + " has no network, and cannot be stopped");
  log_.warn("companion runs without its network", {{"error", stopped.error().message()}});
  co_return co_await wait_out(CrashWindow::kLongestWait);
}

// --- health ---

// The engine's own check comes up to an interval too late, so ours runs next to it until the first
// success. Only the engine's counts failures.
asio::awaitable<bool> CompanionSupervisor::await_health(const CompanionSeen& seen) {
  const v1::HealthcheckConfig& check = facts_.spec.healthcheck();
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - started_at_);
  const auto limit = health_limit(check);
  if (is_late_) co_return co_await wait_for_hint();
  if (elapsed >= limit) {
    is_late_ = true;
    co_return co_await unhealthy(
        title() + " did not become healthy within " + std::to_string(limit.count() / 1000) + " s",
        seen);
  }
  if (stuck_start_ == seen.start_mark) co_return co_await wait_for_hint(limit - elapsed);
  const auto probe = co_await shared_.services.engine.probe_companion(
      facts_, std::min(probe_timeout(check), limit - elapsed));
  if (co_await is_cancelled()) co_return false;
  if (probe && probe->is_healthy()) {
    proven_start_ = seen.start_mark;
    co_return true;
  }
  probe_output_ = probe ? probe->output : probe.error().message();
  if (!probe && probe.error().kind() == EngineErrorKind::TimedOut) stuck_start_ = seen.start_mark;
  co_return co_await wait_for_hint(probe_pause(elapsed));
}

asio::awaitable<bool> CompanionSupervisor::become_ready() {
  if (is_awaited_) {
    shared_.changed.notify();
    co_return co_await wait_for_hint();
  }
  const auto damped = ready_not_before_ - std::chrono::steady_clock::now();
  if (damped > 0s) {
    co_return co_await wait_for_hint(std::chrono::ceil<std::chrono::milliseconds>(damped));
  }
  // A companion that ends meanwhile is restarted; its hook continues, and is waited for again.
  using asio::experimental::awaitable_operators::operator||;
  const auto first = co_await (shared_.hooks.run(facts_) || wait_for_hint());
  if (co_await is_cancelled()) co_return false;
  if (first.index() == 1) co_return true;
  const Result<>& hooks = std::get<0>(first);
  if (!hooks) {
    failed(reason::kHookFailed.name, hooks.error().message());
  } else if (known().hooks_failed()) {
    const bool is_stored = known().error_code() == reason::kHookFailed.name;
    failed(reason::kHookFailed.name,
           is_stored ? known().error_message()
                     : title() + ": a post_start_on_primary command has failed");
  } else if (known().state() != v1::COMPANION_STATE_READY) {
    report_ready();
  }
  co_return co_await wait_for_hint();
}

// --- waits ---

void CompanionSupervisor::hint() {
  AGBOX_ON_CONTROL_THREAD(shared_.services.loop);
  ++hints_;
  shared_.changed.notify();
}

void CompanionSupervisor::isolation_failed() {
  must_stop_ = true;
  hint();
}

void CompanionSupervisor::engine_is_back() {
  ++engine_backs_;
  retry_timer_.skip();
  hint();
}

// Returns at once if one has come since the latest inspection.
asio::awaitable<bool> CompanionSupervisor::wait_for_hint(
    std::optional<std::chrono::milliseconds> limit) {
  co_await shared_.changed.wait(
      [this] { return hints_ != hints_seen_; },
      limit ? std::chrono::steady_clock::now() + *limit : Condition::Deadline::max());
  co_return !co_await is_cancelled();
}

asio::awaitable<bool> CompanionSupervisor::wait_out(std::chrono::nanoseconds pause) {
  const std::uint64_t backs = engine_backs_;
  co_await shared_.changed.wait([this, backs] { return engine_backs_ != backs; },
                                std::chrono::steady_clock::now() + pause);
  co_return !co_await is_cancelled();
}

// --- reports ---

std::string CompanionSupervisor::title() const {
  const bool is_service = facts_.role != v1::COMPANION_ROLE_COMPANION;
  return (is_service ? "service " : "companion container ") + facts_.name();
}

bool CompanionSupervisor::failed(std::string_view code, const std::string& message) {
  if (is_awaited_) {
    failure_ = Failure{.code = std::string(code), .message = message};
    shared_.changed.notify();
    return false;
  }
  auto& known = *facts_.container.mutable_companion();
  // One event per outage, which has the first reason. A command that failed is another failure.
  const bool is_new_failure =
      code == reason::kHookFailed.name && known.error_code() != reason::kHookFailed.name;
  if (known.state() == v1::COMPANION_STATE_FAILED && !is_new_failure) {
    if (facts_.container.SerializeAsString() != stored_) report(v1::EVENT_TYPE_UNSPECIFIED);
    return true;
  }
  known.set_state(v1::COMPANION_STATE_FAILED);
  known.set_error_code(std::string(code));
  known.set_error_message(message);
  log_.warn("companion failed", {{"error", message}});
  report(v1::COMPANION_CONTAINER_FAILED);
  return true;
}

void CompanionSupervisor::report_ready() {
  is_awaited_ = false;
  auto& known = *facts_.container.mutable_companion();
  known.set_state(v1::COMPANION_STATE_READY);
  known.clear_error_code();
  known.clear_error_message();
  crashes_.started(shared_.services.clock.boot_now());
  log_.info("companion ready");
  report(v1::COMPANION_CONTAINER_READY);
}

// The event, if there is one, and what a later daemon must know, in one change.
void CompanionSupervisor::report(v1::EventType type) {
  std::vector<Mutation> mutations;
  if (type != v1::EVENT_TYPE_UNSPECIFIED) {
    v1::SandboxEvent event;
    event.set_event_type(type);
    v1::CompanionContainerEventDetails& details = *event.mutable_companion_container();
    details.set_name(facts_.name());
    details.set_error_code(known().error_code());
    details.set_error_message(known().error_message());
    mutations.push_back(shared_.journal.entry(std::move(event)));
  }
  mutations.emplace_back(change::PutContainer{facts_.sandbox_id, facts_.name(), facts_.container});
  stored_ = facts_.container.SerializeAsString();
  AGBOX_FAILPOINT("companion.report.before");
  shared_.journal.append(
      std::move(mutations), Urgency::GoesOn,
      [&journal = shared_.journal, status = status()] { journal.show_companion(status); });
}

v1::CompanionStatus CompanionSupervisor::status() const {
  v1::CompanionStatus status;
  status.set_name(facts_.name());
  status.set_role(facts_.role);
  status.set_image(facts_.spec.image());
  const bool is_new = known().state() == v1::COMPANION_STATE_UNSPECIFIED;
  status.set_state(is_new ? v1::COMPANION_STATE_STARTING : known().state());
  status.set_health(name_of(health_));
  status.set_restart_count(facts_.container.restart_count());
  status.set_last_exit(facts_.container.last_exit());
  if (known().state() == v1::COMPANION_STATE_FAILED) {
    status.set_error_code(known().error_code());
    status.set_error_message(known().error_message());
  }
  return status;
}

// Not stored: the next daemon asks the engine.
void CompanionSupervisor::set_health(CompanionSeen::Health health) {
  if (health == health_) return;
  health_ = health;
  shared_.journal.show_companion_health(facts_.name(), name_of(health));
}

void CompanionSupervisor::show() const {
  shared_.journal.show_companion(status());
}

void CompanionSupervisor::forget_container() {
  facts_.container = {};
}

}  // namespace agbox
