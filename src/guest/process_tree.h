// SPDX-License-Identifier: Apache-2.0
// Who descends from whom, as /proc tells it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/process_stat.h"

namespace agbox::guest {

// The parent of a process of this container; nothing where it is gone.
std::optional<pid_t> parent_of(pid_t pid);

using Process = ProcessStat;
inline constexpr std::uint64_t kTicksPerSecond = 100;  // the kernel's unit of start_ticks

// The clock of start_ticks.
std::uint64_t ticks_now();

// Every process of this container as one walk of /proc sees it. Processes come and go meanwhile:
// what one walk misses the next one finds.
class ProcessTable {
 public:
  // Nothing where the walk fails, for want of memory or descriptors say: what it would show is not
  // all there is.
  static std::optional<ProcessTable> read();
  explicit ProcessTable(std::vector<Process> processes);

  std::vector<Process> children_of(pid_t parent) const;
  // All that come from these, and these themselves.
  std::vector<Process> with_descendants(std::vector<Process> processes) const;

 private:
  std::pair<std::size_t, std::size_t> range_of(pid_t parent) const;
  std::vector<Process> by_parent_;  // in the order of their parents
};

// Whether `pid` is `ancestor` or comes from it.
bool descends(pid_t pid, pid_t ancestor,
              const std::function<std::optional<pid_t>(pid_t)>& parent = parent_of);

}  // namespace agbox::guest
