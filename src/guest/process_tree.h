// SPDX-License-Identifier: Apache-2.0
// Who descends from whom, as /proc tells it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace agbox::guest {

// From the text of /proc/<pid>/stat. The name in it is the process's own choice, parentheses and
// newlines included.
std::optional<pid_t> parent_in_stat(std::string_view stat);

// The parent of a process of this container; nothing where it is gone.
std::optional<pid_t> parent_of(pid_t pid);

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  std::uint64_t start_ticks = 0;  // since the machine started, in kTicksPerSecond

  bool operator==(const Process&) const = default;
};
inline constexpr std::uint64_t kTicksPerSecond = 100;  // the kernel's unit towards programs

// From the text of /proc/<pid>/stat; nothing where it is not whole.
std::optional<Process> process_in_stat(std::string_view stat);

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
