// SPDX-License-Identifier: Apache-2.0
// The smallest engine: workloads are entries of a map, without networks, containers or images. It
// shows that control needs nothing of Docker; the contract test holds it to the same rules.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "support/memory/memory_machine.h"

namespace agbox {

class MemoryEngine final : public Engine {
 public:
  explicit MemoryEngine(MemoryMachine& machine) : machine_(machine) {}

  std::string name() const override { return "the memory engine"; }

  boost::asio::awaitable<void> watch(EngineListener& listener, const SandboxClaims&) override {
    listener.reachable({.id = "memory", .title = "Memory 1"});
    listener.reconcile_due();
    using Timer = boost::asio::steady_timer;
    Timer news(co_await boost::asio::this_coro::executor, Timer::time_point::max());
    std::set<std::string> may_have_ended;
    machine_.on_doubt = [&](const std::string& sandbox_id) {
      may_have_ended.insert(sandbox_id);
      news.expires_at(Timer::time_point::min());
    };
    std::set<std::string> changed;
    machine_.on_change = [&](const std::string& sandbox_id) {
      changed.insert(sandbox_id);
      news.expires_at(Timer::time_point::min());
    };
    std::set<MemoryMachine::CompanionId> may_have_changed;
    machine_.on_companion_doubt = [&](const MemoryMachine::CompanionId& id) {
      may_have_changed.insert(id);
      news.expires_at(Timer::time_point::min());
    };
    while ((co_await boost::asio::this_coro::cancellation_state).cancelled() ==
           boost::asio::cancellation_type::none) {
      co_await news.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
      news.expires_at(Timer::time_point::max());
      for (const std::string& id : std::exchange(may_have_ended, {}))
        listener.container_may_have_ended(id);
      for (const auto& [sandbox_id, name] : std::exchange(may_have_changed, {}))
        listener.companion_may_have_changed(sandbox_id, name);
      for (const std::string& id : std::exchange(changed, {})) listener.container_changed(id);
    }
    machine_.on_change = {};
    machine_.on_doubt = {};
    machine_.on_companion_doubt = {};
  }

  EngineAwaitable<> ensure_image(SandboxFacts& facts, Progress progress) override {
    progress("pulling " + facts.spec.create_spec.image() + " into memory");
    facts.containers[""].mutable_image()->set_user("root");
    co_return EngineResult<>{};
  }

  EngineAwaitable<> ensure_workload(SandboxFacts& facts, Attachments) override {
    machine_.workloads.try_emplace(facts.sandbox_id).first->second.ports =
        facts.spec.create_spec.ports();
    facts.containers[""].set_container_id(facts.sandbox_id);
    co_return EngineResult<>{};
  }

  EngineAwaitable<> require_workload(const SandboxFacts& facts) override {
    if (machine_.find(facts.sandbox_id) == nullptr) {
      co_return engine_fail(EngineErrorKind::Refused, "workload is gone");
    }
    machine_.end(facts.sandbox_id);
    co_return EngineResult<>{};
  }

  EngineAwaitable<> start(SandboxFacts& facts) override {
    if (machine_.find(facts.sandbox_id) == nullptr) {
      co_return engine_fail(EngineErrorKind::NotFound, "no workload " + facts.sandbox_id);
    }
    for (const v1::PortMapping& port : facts.spec.create_spec.ports()) {
      const auto publisher = find_publisher(port);
      if (!publisher || *publisher == facts.sandbox_id) continue;
      co_return engine_fail(EngineErrorKind::PortInUse, "port of " + *publisher);
    }
    machine_.start(facts.sandbox_id);
    facts.containers[""].set_engine_started_at(mark(facts.sandbox_id));
    co_return EngineResult<>{};
  }

  EngineAwaitable<SandboxInspection> inspect(const SandboxFacts& facts) override {
    const MemoryWorkload* workload = machine_.find(facts.sandbox_id);
    if (workload == nullptr) co_return lost(PrimarySeen::Missing, "it was removed");
    if (!workload->is_running) {
      co_return workload->starts == 0 ? lost(PrimarySeen::Created, "it was not started")
                                      : lost(PrimarySeen::Exited, "it exited with code 0");
    }
    if (facts.containers.at("").engine_started_at() != mark(facts.sandbox_id)) {
      co_return lost(PrimarySeen::OtherStart, "it was started by another process");
    }
    const auto seen = workload->is_paused ? PrimarySeen::Paused : PrimarySeen::Running;
    co_return SandboxInspection{.seen = {.primary = seen}, .loss = std::nullopt};
  }

  EngineAwaitable<> stop(const SandboxFacts& facts) override {
    machine_.end(facts.sandbox_id);
    for (const auto& [name, container] : facts.containers) {
      machine_.end({facts.sandbox_id, name});
    }
    co_return EngineResult<>{};
  }
  EngineAwaitable<> pause(const SandboxFacts& facts) override { return set_paused(facts, true); }
  EngineAwaitable<> unpause(const SandboxFacts& facts) override { return set_paused(facts, false); }
  EngineAwaitable<> stop_all(const SandboxFacts& facts) override {
    machine_.end(facts.sandbox_id);
    for (const auto& [id, companion] : machine_.companions) {
      if (id.first == facts.sandbox_id) machine_.end(id);
    }
    co_return EngineResult<>{};
  }

  EngineAwaitable<> remove(SandboxFacts& facts) override {
    machine_.end(facts.sandbox_id);
    machine_.workloads.erase(facts.sandbox_id);
    std::erase_if(machine_.companions,
                  [&](const auto& each) { return each.first.first == facts.sandbox_id; });
    if (machine_.on_change) machine_.on_change(facts.sandbox_id);
    facts.containers.clear();
    co_return EngineResult<>{};
  }

  EngineAwaitable<> ensure_companion_image(CompanionFacts& facts, Progress progress) override {
    progress("pulling " + facts.spec.image() + " into memory");
    co_return EngineResult<>{};
  }
  EngineAwaitable<> ensure_companion(CompanionFacts& facts, Attachments) override {
    const v1::HealthcheckConfig& check = facts.spec.healthcheck();
    machine_.companions.try_emplace(id_of(facts)).first->second.has_check =
        check.test_size() > 0 && check.test(0) != "NONE";
    facts.container.set_container_id(container_id(id_of(facts)));
    co_return EngineResult<>{};
  }
  EngineAwaitable<> start_companion(CompanionFacts& facts) override {
    if (machine_.find(facts.sandbox_id) == nullptr || machine_.find(id_of(facts)) == nullptr) {
      co_return engine_fail(EngineErrorKind::NotFound, "no companion " + facts.name());
    }
    machine_.start(id_of(facts));
    facts.container.set_engine_started_at(mark(id_of(facts)));
    co_return EngineResult<>{};
  }
  EngineAwaitable<CompanionSeen> inspect_companion(CompanionFacts facts) override {
    using State = CompanionSeen::State;
    const MemoryCompanion* companion = machine_.find(id_of(facts));
    if (companion == nullptr || facts.container.container_id().empty()) co_return CompanionSeen{};
    CompanionSeen seen;
    if (companion->starts == 0) {
      seen.state = State::Created;
      co_return seen;
    }
    seen.start_mark = mark(id_of(facts));
    if (!companion->is_running) {
      seen.state = State::Exited;
      seen.loss =
          ContainerLoss{.how = "it exited with code " + std::to_string(companion->exit_code),
                        .exit_code = companion->exit_code};
      co_return seen;
    }
    seen.state = companion->is_paused ? State::Paused : State::Running;
    seen.health = companion->health;
    seen.probe_output = companion->probe_output;
    co_return seen;
  }
  EngineAwaitable<ProbeOutcome> probe_companion(CompanionFacts facts,
                                                std::chrono::milliseconds) override {
    const MemoryCompanion* companion = machine_.find(id_of(facts));
    if (companion == nullptr || !companion->is_running) {
      co_return engine_fail(EngineErrorKind::Refused, facts.name() + " does not run");
    }
    const auto probe = machine_.probes.find(facts.name());
    if (!companion->has_check || probe == machine_.probes.end()) co_return ProbeOutcome{};
    if (!probe->second.has_end) {
      co_return engine_fail(EngineErrorKind::TimedOut, "the check did not end");
    }
    co_return probe->second.outcome;
  }
  EngineAwaitable<std::int64_t> start_companion_guest(CompanionFacts facts) override {
    co_return engine_fail(EngineErrorKind::Refused, facts.name() + " has no guest in memory");
  }
  EngineAwaitable<std::string> companion_output(CompanionFacts facts) override {
    const MemoryCompanion* companion = machine_.find(id_of(facts));
    co_return companion == nullptr ? std::string() : companion->output;
  }
  EngineAwaitable<> stop_companion(CompanionFacts facts) override {
    machine_.end(id_of(facts));
    co_return EngineResult<>{};
  }

  EngineAwaitable<std::unique_ptr<ContainerLog>> open_log(ContainerId container,
                                                          LogQuery) override {
    for (const auto& [id, companion] : machine_.companions) {
      if (container_id(id) != container.container_id) continue;
      co_return std::make_unique<MemoryLog>(companion.output);
    }
    if (machine_.find(container.container_id) == nullptr) {
      co_return engine_fail(EngineErrorKind::NotFound, "no container " + container.container_id);
    }
    co_return std::make_unique<MemoryLog>("");
  }

  EngineAwaitable<ContainerUsage> measure(ContainerId container) override {
    for (const auto& [id, companion] : machine_.companions) {
      if (container_id(id) != container.container_id) continue;
      co_return ContainerUsage{.is_running = companion.is_running};
    }
    const MemoryWorkload* workload = machine_.find(container.container_id);
    if (workload == nullptr) {
      co_return engine_fail(EngineErrorKind::NotFound, "no container " + container.container_id);
    }
    co_return ContainerUsage{.is_running = workload->is_running};
  }

  EngineAwaitable<std::optional<std::string>> publisher_of(v1::PortMapping port) override {
    co_return find_publisher(port);
  }
  void restored(const SandboxFacts&) override {}
  boost::asio::awaitable<std::string> remark_on_refusal() override { co_return std::string(); }

  EngineAwaitable<> sweep(const SandboxClaims& claims) override {
    unknown_.clear();
    for (auto next = machine_.workloads.begin(); next != machine_.workloads.end();) {
      const std::string id = next++->first;
      const Judgement judged = judge_container(claims.claim_of(id), id, true);
      if (judged.fate == Fate::Report) unknown_.push_back({id, id, id});
      if (judged.fate == Fate::Remove) machine_.workloads.erase(id);
    }
    std::erase_if(machine_.companions, [&](const auto& each) {
      const SandboxClaim claim = claims.claim_of(each.first.first);
      return judge_container(claim, container_id(each.first), false).fate == Fate::Remove;
    });
    co_return EngineResult<>{};
  }
  const std::vector<UnknownPrimary>& unknown_primaries() const override { return unknown_; }

  boost::asio::awaitable<EngineDiagnosis> diagnose(EngineDiagnosisRequest) override {
    co_return EngineDiagnosis{};
  }
  boost::asio::awaitable<void> shut_down() override { co_return; }

 private:
  // Of one line, without a time.
  class MemoryLog final : public ContainerLog {
   public:
    explicit MemoryLog(std::string output) : output_(std::move(output)) {}
    EngineAwaitable<std::optional<LogPiece>> read() override {
      if (output_.empty()) co_return std::nullopt;
      const std::uint64_t size = output_.size();
      co_return LogPiece{.data = std::exchange(output_, {}), .end = {.time = {}, .bytes = size}};
    }

   private:
    std::string output_;
  };
  std::optional<std::string> find_publisher(const v1::PortMapping& port) const {
    for (const auto& [id, workload] : machine_.workloads) {
      for (const v1::PortMapping& published : workload.ports) {
        if (workload.is_running && is_same_host_port(port, published)) return id;
      }
    }
    return std::nullopt;
  }
  EngineAwaitable<> set_paused(const SandboxFacts& facts, bool is_paused) {
    MemoryWorkload* workload = machine_.find(facts.sandbox_id);
    const bool is_running = workload != nullptr && workload->is_running;
    if (is_running && workload->is_paused && !is_paused)
      machine_.container_may_have_ended(facts.sandbox_id);
    if (is_running) workload->is_paused = is_paused;
    for (const auto& [name, container] : facts.containers) {
      set_paused({facts.sandbox_id, name}, is_paused);
    }
    if (is_paused && !is_running) {
      co_return engine_fail(EngineErrorKind::Conflict, "workload is not running");
    }
    co_return EngineResult<>{};
  }
  void set_paused(const MemoryMachine::CompanionId& id, bool is_paused) {
    MemoryCompanion* companion = machine_.find(id);
    if (companion == nullptr || !companion->is_running) return;
    if (companion->is_paused && !is_paused) machine_.companion_may_have_changed(id);
    companion->is_paused = is_paused;
  }
  static MemoryMachine::CompanionId id_of(const CompanionFacts& facts) {
    return {facts.sandbox_id, facts.name()};
  }
  static std::string container_id(const MemoryMachine::CompanionId& id) {
    return id.first + "/" + id.second;
  }
  static SandboxInspection lost(PrimarySeen seen, std::string how) {
    return {.seen = {.primary = seen}, .loss = ContainerLoss{.how = std::move(how)}};
  }
  std::string mark(const std::string& id) {
    return std::to_string(machine_.workloads.at(id).starts);
  }
  std::string mark(const MemoryMachine::CompanionId& id) {
    return std::to_string(machine_.companions.at(id).starts);
  }

  MemoryMachine& machine_;
  std::vector<UnknownPrimary> unknown_;
};

}  // namespace agbox
