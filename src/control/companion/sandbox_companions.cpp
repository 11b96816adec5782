// SPDX-License-Identifier: Apache-2.0
#include "control/companion/sandbox_companions.h"

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <chrono>
#include <utility>
#include <variant>

#include "async/cancellation.h"
#include "base/check.h"
#include "control/sandbox/operations/step.h"

namespace agbox {
namespace {

// While the engine is unreachable.
constexpr std::chrono::seconds kStopRetry{5};

}  // namespace

SandboxCompanions::SandboxCompanions(ActorServices& services, PrimaryHooks::Sandbox sandbox,
                                     SandboxExecs& execs, Logger log)
    : services_(services),
      sandbox_id_(sandbox.facts.sandbox_id),
      log_(std::move(log)),
      changed_(services.loop.io().get_executor()),
      hooks_(services, sandbox, log_),
      is_quiet_(services.loop.io().get_executor()) {
  is_quiet_.set();
  for (CompanionFacts& facts : companions_of(sandbox.facts)) {
    auto companion = std::make_unique<CompanionSupervisor>(
        CompanionSupervisor::Shared{.services = services,
                                    .journal = sandbox.journal,
                                    .place = sandbox.place,
                                    .hooks = hooks_,
                                    .changed = changed_},
        std::move(facts), log_);
    companion->set_may_start([this, raw = companion.get()] { return may_start(*raw); });
    guests_.push_back(std::make_unique<CompanionGuest>(
        services,
        CompanionGuest::Sandbox{
            .facts = sandbox.facts,
            .journal = sandbox.journal,
            .execs = execs,
            .is_supervised = [this] { return is_supervised_ && has_network_; },
            .spawn = [this](asio::awaitable<void> work) { spawn_for_guest(std::move(work)); }},
        companion->facts(), log_));
    companion->set_guest(*guests_.back());
    hooks_.restore(companion->facts());
    companion->show();
    if (!companion->facts().container.container_id().empty()) may_run_ = true;
    companions_.push_back(std::move(companion));
  }
}

// Required services start one after another.
bool SandboxCompanions::may_start(const CompanionSupervisor& companion) const {
  if (!has_network_) return false;
  if (!companion.is_awaited()) return true;
  for (const auto& other : companions_) {
    if (other.get() == &companion) return true;
    if (other->is_awaited() && !other->is_healthy()) return false;
  }
  return true;
}

// --- operations ---

void SandboxCompanions::begin(CompanionBegin begin, Engine::Progress progress) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  AGBOX_CHECK(running_ == 0, "companions are supervised once");
  if (companions_.empty()) return;
  has_network_ = begin == CompanionBegin::Adopt;
  is_supervised_ = true;
  may_run_ = true;
  is_quiet_.reset();
  for (const auto& companion : companions_) companion->prepare(begin, progress);
  for (const auto& companion : companions_) {
    ++running_;
    tasks_.push_back(
        services_.tasks.spawn("sandbox " + sandbox_id_ + " companion " + companion->facts().name(),
                              supervise(*companion)));
  }
  if (begin != CompanionBegin::Adopt) return;
  for (const auto& guest : guests_) guest->resume();
}

asio::awaitable<void> SandboxCompanions::supervise(CompanionSupervisor& companion) {
  co_await companion.run();
  task_ended();
}

void SandboxCompanions::task_ended() {
  --running_;
  if (running_ + guests_running_ == 0) is_quiet_.set();
  changed_.notify();
}

void SandboxCompanions::spawn_for_guest(asio::awaitable<void> work) {
  if (guests_running_ == 0) guest_tasks_.clear();
  ++guests_running_;
  is_quiet_.reset();
  guest_tasks_.push_back(services_.tasks.spawn("sandbox " + sandbox_id_ + " guest of a companion",
                                               run_for_guest(std::move(work))));
}

asio::awaitable<void> SandboxCompanions::run_for_guest(asio::awaitable<void> work) {
  co_await std::move(work);
  --guests_running_;
  if (running_ + guests_running_ == 0) is_quiet_.set();
}

CompanionGuest* SandboxCompanions::guest_of(const std::string& name) const {
  const auto found = std::ranges::find(guests_, name, [](const auto& one) { return one->name(); });
  return found == guests_.end() ? nullptr : found->get();
}

void SandboxCompanions::rest() {
  for (const auto& guest : guests_) guest->rest();
}

asio::awaitable<void> SandboxCompanions::quiesce() {
  is_supervised_ = false;
  for (const Task& task : std::exchange(tasks_, {})) task.cancel();
  for (const Task& task : std::exchange(guest_tasks_, {})) task.cancel();
  co_await is_quiet_.wait_uncancelled();
}

void SandboxCompanions::network_is_up() {
  has_network_ = true;
  changed_.notify();
}

asio::awaitable<OperationResult<>> SandboxCompanions::finish_required() {
  std::vector<CompanionSupervisor*> required;
  for (const auto& companion : companions_) {
    if (companion->is_awaited()) required.push_back(companion.get());
  }
  const auto is_decided = [&required] {
    return std::ranges::any_of(required,
                               [](const auto* one) { return one->failure().has_value(); }) ||
           std::ranges::all_of(required, [](const auto* one) { return one->is_healthy(); });
  };
  // Each supervisor has its own limit.
  co_await changed_.wait(is_decided, Condition::Deadline::max());
  if (co_await is_cancelled()) {
    co_return std::unexpected(OperationFailure(OperationEnd::Cancelled, "cancelled"));
  }
  for (CompanionSupervisor* one : required) {
    if (one->failure()) co_return refuse(one->failure()->message);
  }
  for (CompanionSupervisor* one : required) {
    AGBOX_CO_TRY_VOID(co_await step("companions.hooks", run_hooks(*one)));
  }
  for (CompanionSupervisor* one : required) {
    if (one->failure()) co_return refuse(one->failure()->message);
  }
  for (CompanionSupervisor* one : required) one->report_ready();
  co_return OperationResult<>{};
}

// Ends early if a required service fails: a hook may wait for it.
asio::awaitable<Result<>> SandboxCompanions::run_hooks(CompanionSupervisor& companion) {
  using asio::experimental::awaitable_operators::operator||;
  const auto has_failure = [this] {
    return std::ranges::any_of(companions_,
                               [](const auto& one) { return one->failure().has_value(); });
  };
  auto first = co_await (hooks_.run(companion.facts()) ||
                         changed_.wait(has_failure, Condition::Deadline::max()));
  if (first.index() == 0) co_return std::get<0>(std::move(first));
  co_return Result<>{};
}

std::map<std::string, store::v1::Container> SandboxCompanions::containers() const {
  std::map<std::string, store::v1::Container> all;
  for (const auto& companion : companions_) {
    if (companion->facts().container.container_id().empty()) continue;
    all.emplace(companion->facts().name(), companion->facts().container);
  }
  return all;
}

void SandboxCompanions::forget_containers() {
  rest();
  for (const auto& companion : companions_) companion->forget_container();
}

// --- between operations ---

void SandboxCompanions::follow(Wanted wanted) {
  if (services_.is_shutting_down || companions_.empty()) return;
  if (wanted == Wanted::Run && running_ == 0 && !is_supervised_) {
    begin(CompanionBegin::Adopt, [](const std::string&) {});
  }
  // No event of theirs comes after SANDBOX_DELETE_REQUESTED, though the operation that is cancelled
  // for the delete may take a while to end.
  if (wanted == Wanted::End) {
    for (const Task& task : std::exchange(tasks_, {})) task.cancel();
  }
  if (wanted == Wanted::Stop && std::exchange(may_run_, false)) {
    is_supervised_ = false;
    for (const Task& task : std::exchange(tasks_, {})) task.cancel();
    for (const Task& task : std::exchange(guest_tasks_, {})) task.cancel();
    is_quiet_.reset();
    ++running_;
    tasks_.push_back(
        services_.tasks.spawn("sandbox " + sandbox_id_ + " stop companions", stop_all()));
  }
}

asio::awaitable<void> SandboxCompanions::stop_all() {
  co_await changed_.wait([this] { return running_ == 1; }, Condition::Deadline::max());
  co_await stop_containers();
  task_ended();
}

// A refusal is logged: a delete removes what is left.
asio::awaitable<void> SandboxCompanions::stop_containers() {
  for (const auto& companion : companions_) {
    while (!companion->facts().container.container_id().empty() && !co_await is_cancelled()) {
      const auto stopped = co_await services_.engine.stop_companion(companion->facts());
      if (stopped) break;
      log_.warn("companion cannot be stopped",
                {{"companion", companion->facts().name()}, {"error", stopped.error().message()}});
      if (stopped.error().is_definite()) break;
      const std::uint64_t backs = engine_backs_;
      co_await changed_.wait([this, backs] { return engine_backs_ != backs; },
                             std::chrono::steady_clock::now() + kStopRetry);
    }
  }
}

void SandboxCompanions::may_have_changed(const std::string& name) {
  for (const auto& companion : companions_) {
    if (companion->facts().name() == name) companion->hint();
  }
}

void SandboxCompanions::isolation_failed() {
  for (const auto& companion : companions_) companion->isolation_failed();
}

void SandboxCompanions::engine_is_back() {
  ++engine_backs_;
  for (const auto& companion : companions_) companion->engine_is_back();
}

bool SandboxCompanions::is_creating() const {
  return is_supervised_ && std::ranges::any_of(companions_, [](const auto& companion) {
           return companion->is_creating();
         });
}

std::vector<Mutation> SandboxCompanions::stored() const {
  std::vector<Mutation> mutations;
  for (const auto& companion : companions_) {
    const CompanionFacts& facts = companion->facts();
    if (!facts.container.has_companion()) continue;
    mutations.emplace_back(change::PutContainer{sandbox_id_, facts.name(), facts.container});
  }
  return mutations;
}

void SandboxCompanions::forget() {
  AGBOX_CHECK(running_ == 0, "companions of a deleted sandbox are not supervised");
  for (const auto& guest : guests_) guest->forget();
  companions_.clear();
}

}  // namespace agbox
