// SPDX-License-Identifier: Apache-2.0
#include "guest/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <unordered_set>

#include "base/unique_fd.h"

namespace agbox::guest {

std::optional<pid_t> parent_of(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return stat ? std::optional(stat->parent) : std::nullopt;
}

std::uint64_t ticks_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  constexpr std::uint64_t kNanosecondsPerTick = 1'000'000'000 / kTicksPerSecond;
  return static_cast<std::uint64_t>(now.tv_sec) * kTicksPerSecond +
         static_cast<std::uint64_t>(now.tv_nsec) / kNanosecondsPerTick;
}

bool has_more_processes_than(std::size_t count) {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (!proc) return false;
  for (std::size_t found = 0; found <= count;) {
    const dirent* entry = ::readdir(proc.get());
    if (entry == nullptr) return false;
    if (*entry->d_name >= '0' && *entry->d_name <= '9') ++found;
  }
  return true;
}

bool is_cpu_crowded() {
  constexpr unsigned kPerCpu = 64;
  const UniqueFd file(::open("/proc/loadavg", O_RDONLY | O_CLOEXEC));
  std::array<char, 128> text{};
  if (!file || ::read(file.get(), text.data(), text.size() - 1) <= 0) return false;
  // "0.20 0.18 0.12 <running>/<existing> 11206"
  unsigned running = 0;
  if (std::sscanf(text.data(), "%*s %*s %*s %u/", &running) != 1) return false;
  const unsigned crowd = kPerCpu * std::max(std::thread::hardware_concurrency(), 1U);
  return running > crowd && has_more_processes_than(crowd);
}

std::expected<ProcessTable, WalkProblem> ProcessTable::read(Deadline deadline) {
  std::vector<Process> processes;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (!proc) return std::unexpected(WalkProblem::Failed);
  while (true) {
    if (std::chrono::steady_clock::now() > deadline) return std::unexpected(WalkProblem::TooSlow);
    errno = 0;
    const dirent* entry = ::readdir(proc.get());
    if (entry == nullptr && errno != 0) return std::unexpected(WalkProblem::Failed);
    if (entry == nullptr) break;
    if (*entry->d_name < '0' || *entry->d_name > '9') continue;
    const std::string path = std::string(entry->d_name) + "/stat";
    const UniqueFd fd(::openat(::dirfd(proc.get()), path.c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, 1024> text;
    const ssize_t got = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
    if (got < 0 && errno != ENOENT && errno != ESRCH) return std::unexpected(WalkProblem::Failed);
    if (got <= 0) continue;  // it is gone meanwhile
    if (const auto process = parse_process_stat({text.data(), static_cast<std::size_t>(got)})) {
      processes.push_back(*process);
    }
  }
  return ProcessTable(std::move(processes));
}

ProcessTable::ProcessTable(std::vector<Process> processes) : by_parent_(std::move(processes)) {
  std::ranges::sort(by_parent_, {}, &Process::parent);
}

std::pair<std::size_t, std::size_t> ProcessTable::range_of(pid_t parent) const {
  const auto found = std::ranges::equal_range(by_parent_, parent, {}, &Process::parent);
  return {static_cast<std::size_t>(found.begin() - by_parent_.begin()),
          static_cast<std::size_t>(found.end() - by_parent_.begin())};
}

std::vector<Process> ProcessTable::children_of(pid_t parent) const {
  const auto [first, last] = range_of(parent);
  return {by_parent_.begin() + static_cast<std::ptrdiff_t>(first),
          by_parent_.begin() + static_cast<std::ptrdiff_t>(last)};
}

std::vector<Process> ProcessTable::with_descendants(std::vector<Process> processes) const {
  std::unordered_set<pid_t> seen;
  for (const Process& process : processes) seen.insert(process.pid);
  for (std::size_t next = 0; next < processes.size(); ++next) {
    const Process parent = processes[next];
    const auto [first, last] = range_of(parent.pid);
    for (std::size_t i = first; i < last; ++i) {
      const Process& child = by_parent_[i];
      // A child older than its parent belonged to another process whose pid was reused during the
      // walk.
      if (child.start_ticks < parent.start_ticks || !seen.insert(child.pid).second) continue;
      processes.push_back(child);
    }
  }
  return processes;
}

bool descends(pid_t pid, pid_t ancestor, const std::function<std::optional<pid_t>(pid_t)>& parent) {
  // Parents change during the walk, so a cycle is possible; no tree is this deep.
  for (int step = 0; step < 4096 && pid > 1; ++step) {
    if (pid == ancestor) return true;
    const auto next = parent(pid);
    if (!next) return false;
    pid = *next;
  }
  return false;
}

}  // namespace agbox::guest
