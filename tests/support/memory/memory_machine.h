// SPDX-License-Identifier: Apache-2.0
// A machine that exists only in this process: the workloads of MemoryEngine, and the guests that
// MemoryPlace finds in them. It outlives both, as a machine outlives a daemon.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

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

struct MemoryMachine {
  std::map<std::string, MemoryWorkload> workloads;        // by sandbox ID
  std::map<std::string, std::function<void()>> on_start;  // of those that a place is open for
  std::map<std::string, std::function<void()>> on_end;
  // Set while an engine is watched: a workload has ended, or runs on after a pause.
  std::function<void(const std::string& sandbox_id)> on_doubt;

  MemoryWorkload* find(const std::string& sandbox_id) {
    const auto found = workloads.find(sandbox_id);
    return found == workloads.end() ? nullptr : &found->second;
  }
  void start(const std::string& sandbox_id) {
    MemoryWorkload& workload = workloads.at(sandbox_id);
    if (workload.is_running) return;
    workload.is_running = true;
    ++workload.starts;
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
  void container_may_have_ended(const std::string& sandbox_id) const {
    if (on_doubt) on_doubt(sandbox_id);
  }
};

}  // namespace agbox
