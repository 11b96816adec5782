// SPDX-License-Identifier: Apache-2.0
// Keeps one companion running: creates it, starts it, waits until it is healthy, runs its commands
// for the primary, and starts it again when it has ended. Inspects, lets companion_plan() decide,
// acts, and waits for the next hint; so it can be cancelled and begun again at any point. Clients
// get one COMPANION_CONTAINER_FAILED per outage, and COMPANION_CONTAINER_READY when it is over.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "async/condition.h"
#include "async/retry_timer.h"
#include "base/log.h"
#include "control/actor_services.h"
#include "control/companion/companion_guest.h"
#include "control/companion/primary_hooks.h"
#include "control/sandbox/sandbox_journal.h"
#include "model/sandbox/companion_plan.h"
#include "model/sandbox/crash_window.h"
#include "model/sandbox/lifecycle.h"

namespace agbox {

class CompanionSupervisor {
 public:
  // What the companions of one sandbox share.
  struct Shared {
    ActorServices& services;
    SandboxJournal& journal;
    SandboxPlace& place;
    PrimaryHooks& hooks;
    Condition& changed;
  };
  // Whether the sandbox's network is up and it is its turn among the required services.
  using MayStart = std::function<bool()>;

  CompanionSupervisor(Shared shared, CompanionFacts facts, const Logger& log);
  CompanionSupervisor(const CompanionSupervisor&) = delete;

  // Until it is cancelled, or the companion cannot come back.
  asio::awaitable<void> run();
  void set_may_start(MayStart may_start) { may_start_ = std::move(may_start); }
  // It outlives the supervisor.
  void set_guest(CompanionGuest& guest) { guest_ = &guest; }
  // Before run(). `progress` reports pulls.
  void prepare(CompanionBegin begin, Engine::Progress progress);

  CompanionFacts& facts() { return facts_; }
  const CompanionFacts& facts() const { return facts_; }
  // A start of the sandbox waits for it: it is required, and not reported as ready yet.
  bool is_awaited() const { return is_awaited_; }
  bool is_healthy() const { return is_healthy_; }
  // Of one that is awaited: why it will not become healthy.
  const std::optional<Failure>& failure() const { return failure_; }
  // It may have a container that is not in its facts yet.
  bool is_creating() const { return may_create_; }

  // Of one that is awaited: its sandbox is about to be ready.
  void report_ready();
  // The engine reports a change.
  void hint();
  // It is stopped, and started again once its network is isolated.
  void isolation_failed();
  // What waits before it is tried again waits no longer.
  void engine_is_back();
  void show() const;
  // Its container is removed.
  void forget_container();

 private:
  const store::v1::Container::Companion& known() const { return facts_.container.companion(); }

  // These return false if there is nothing more to do, or the caller was cancelled.
  asio::awaitable<bool> act(CompanionStep step, const CompanionSeen& seen);
  asio::awaitable<bool> create();
  enum class Counts { AsStart, AsRestart };
  asio::awaitable<bool> start(Counts counts);
  asio::awaitable<bool> restart(const CompanionSeen& seen);
  asio::awaitable<bool> stop();
  asio::awaitable<bool> await_health(const CompanionSeen& seen);
  asio::awaitable<bool> unhealthy(std::string what, const CompanionSeen& seen);
  asio::awaitable<bool> become_ready();
  asio::awaitable<bool> wait_for_hint(std::optional<std::chrono::milliseconds> limit = {});
  asio::awaitable<bool> wait_out(std::chrono::nanoseconds pause);
  EngineAwaitable<> in_turn(EngineAwaitable<> call);
  EngineAwaitable<> make();
  // Repeats the call while the engine is unreachable. An error is definite, or the caller was
  // cancelled.
  template <class T>
  asio::awaitable<EngineResult<T>> until_answered(std::function<EngineAwaitable<T>()> call);

  // False if the companion is not tried again: then its sandbox fails.
  bool failed(std::string_view code, const std::string& message);
  void report(v1::EventType type);
  v1::CompanionStatus status() const;
  void set_health(CompanionSeen::Health health);
  std::string title() const;
  std::string why_lost() const;
  // The engine's own latest run, or else ours.
  const std::string& printed_by_check(const CompanionSeen& seen) const;

  Shared shared_;
  CompanionFacts facts_;
  MayStart may_start_;
  CompanionGuest* guest_ = nullptr;
  Logger log_;
  Engine::Progress progress_;
  RetryTimer retry_timer_;
  CrashWindow crashes_;
  std::uint64_t hints_ = 0;       // received
  std::uint64_t hints_seen_ = 0;  // before the latest inspection
  std::uint64_t engine_backs_ = 0;
  bool may_create_ = false;
  bool is_start_due_ = false;
  bool is_awaited_ = false;
  bool is_healthy_ = false;
  bool is_late_ = false;  // it did not become healthy in time since its latest start
  bool must_stop_ = false;
  std::chrono::milliseconds last_wait_{0};  // before the next start
  std::optional<Failure> failure_;
  std::chrono::steady_clock::time_point inspect_not_before_;
  std::chrono::steady_clock::time_point ready_not_before_;  // after it was ready and unhealthy
  std::string stored_;  // the container's record, as of report()
  std::chrono::steady_clock::time_point started_at_;
  std::string proven_start_;  // the start in which our own run of the health check succeeded
  std::string stuck_start_;   // the start in which one did not end
  std::string probe_output_;  // of the latest
  CompanionSeen::Health health_ = CompanionSeen::Health::None;
};

}  // namespace agbox
