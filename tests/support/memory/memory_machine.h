// SPDX-License-Identifier: Apache-2.0
// A machine that exists only in this process: the workloads of MemoryEngine, and the guests that
// MemoryPlace finds in them. It outlives both, as a machine outlives a daemon.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/sandbox/companion.h"
#include "model/spec/ports.h"

namespace agbox {

struct MemoryWorkload {
  bool is_running = false;
  bool is_paused = false;
  bool has_passed = false;  // its guest got Go in this start
  unsigned starts = 0;
  std::set<std::string> execs;        // that its guest has not forgotten yet
  std::vector<std::string> copies{};  // targets of what was copied into it
  PortMappings ports{};               // that it publishes while it runs
};

struct MemoryCompanion {
  bool is_running = false;
  bool is_paused = false;
  unsigned starts = 0;
  int exit_code = 0;
  bool has_check = false;
  CompanionSeen::Health health = CompanionSeen::Health::None;  // while it runs
  std::string probe_output{};
  std::string output{};  // what it printed
};

// How each check of a companion's health ends.
struct MemoryProbe {
  ProbeOutcome outcome{};
  bool has_end = true;
};

struct MemoryMachine {
  using CompanionId = std::pair<std::string, std::string>;  // sandbox ID and name
  std::map<std::string, MemoryWorkload> workloads;          // by sandbox ID
  std::map<std::string, std::function<void()>> on_start;    // of those that a place is open for
  std::map<std::string, std::function<void()>> on_end;
  // Set while an engine is watched: a workload has ended, or runs on after a pause.
  std::function<void(const std::string& sandbox_id)> on_doubt;
  // The same: a container was started or removed.
  std::function<void(const std::string& sandbox_id)> on_change;
  std::map<CompanionId, MemoryCompanion> companions;
  std::map<std::string, MemoryProbe> probes;                   // by name; healthy if there is none
  std::function<void(const CompanionId&)> on_companion_doubt;  // the same, or its health changed

  MemoryWorkload* find(const std::string& sandbox_id) {
    const auto found = workloads.find(sandbox_id);
    return found == workloads.end() ? nullptr : &found->second;
  }
  void start(const std::string& sandbox_id) {
    MemoryWorkload& workload = workloads.at(sandbox_id);
    if (workload.is_running) return;
    workload.is_running = true;
    ++workload.starts;
    if (on_change) on_change(sandbox_id);
    if (const auto found = on_start.find(sandbox_id); found != on_start.end()) found->second();
  }
  void end(const std::string& sandbox_id) {
    MemoryWorkload* workload = find(sandbox_id);
    if (workload == nullptr || !workload->is_running) return;
    workload->is_running = workload->is_paused = workload->has_passed = false;
    workload->execs.clear();
    if (const auto found = on_end.find(sandbox_id); found != on_end.end()) found->second();
    container_may_have_ended(sandbox_id);
  }

  MemoryCompanion* find(const CompanionId& id) {
    const auto found = companions.find(id);
    return found == companions.end() ? nullptr : &found->second;
  }
  void start(const CompanionId& id) {
    MemoryCompanion& companion = companions.at(id);
    if (companion.is_running) return;
    companion.is_running = true;
    ++companion.starts;
    if (on_change) on_change(id.first);
    using Health = CompanionSeen::Health;
    companion.health = companion.has_check ? Health::Starting : Health::None;
  }
  void end(const CompanionId& id, int exit_code = 0) {
    MemoryCompanion* companion = find(id);
    if (companion == nullptr || !companion->is_running) return;
    companion->is_running = companion->is_paused = false;
    companion->exit_code = exit_code;
    companion_may_have_changed(id);
  }
  void set_health(const CompanionId& id, CompanionSeen::Health health, std::string output = {}) {
    MemoryCompanion& companion = companions.at(id);
    companion.health = health;
    companion.probe_output = std::move(output);
    companion_may_have_changed(id);
  }
  void companion_may_have_changed(const CompanionId& id) const {
    if (on_companion_doubt) on_companion_doubt(id);
  }
  void container_may_have_ended(const std::string& sandbox_id) const {
    if (on_doubt) on_doubt(sandbox_id);
  }
};

}  // namespace agbox
