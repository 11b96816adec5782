// SPDX-License-Identifier: Apache-2.0
// The process hierarchy according to /proc.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/process_stat.h"

namespace agbox::guest {

// The parent of a process of this container; nullopt if it is gone.
std::optional<pid_t> parent_of(pid_t pid);

using Process = ProcessStat;
inline constexpr std::uint64_t kTicksPerSecond = 100;  // the kernel's unit of start_ticks

// The current time on the clock of start_ticks.
std::uint64_t ticks_now();

// Of this container. Reads no more of /proc than it needs.
bool has_more_processes_than(std::size_t count);

// Many more processes of this machine want to run than it has CPUs, and this container has so many
// processes itself: the load of others alone is no reason to stop all of ours.
bool is_cpu_crowded();

// Why a walk has no result: it would be incomplete.
enum class WalkProblem {
  Failed,   // for example for lack of memory or descriptors
  TooSlow,  // past its deadline: its many processes leave us hardly any CPU time
};

// Every process of this container as seen by one walk of /proc. Processes come and go during a
// walk: what one misses the next finds.
class ProcessTable {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  // A container of so few processes does not keep us from the CPU: they are read however long it
  // takes next to the load of others.
  static constexpr std::size_t kFew = 64;
  static std::expected<ProcessTable, WalkProblem> read(Deadline deadline = Deadline::max(),
                                                       std::size_t few = kFew);
  explicit ProcessTable(std::vector<Process> processes);

  std::vector<Process> children_of(pid_t parent) const;
  // These processes and all their descendants.
  std::vector<Process> with_descendants(std::vector<Process> processes) const;

 private:
  std::pair<std::size_t, std::size_t> range_of(pid_t parent) const;
  std::vector<Process> by_parent_;  // sorted by parent
};

// Whether `pid` is `ancestor` or a descendant of it.
bool descends(pid_t pid, pid_t ancestor,
              const std::function<std::optional<pid_t>(pid_t)>& parent = parent_of);

}  // namespace agbox::guest
