// SPDX-License-Identifier: Apache-2.0
#include "guest/process_tree.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>

#include "base/unique_fd.h"

namespace agbox::guest {
namespace {

// The names of all processes in /proc, a few per system call. One call of readdir() lists a
// thousand at a time: next to a fork bomb that takes seconds, in which no deadline is checked.
class PidListing {
 public:
  PidListing() : proc_(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

  int fd() const { return proc_.get(); }

  // Valid until the next call; empty at the end.
  std::expected<std::string_view, WalkProblem> next() {
    while (true) {
      if (at_ == end_) {
        const long got = ::syscall(SYS_getdents64, proc_.get(), buffer_.data(), buffer_.size());
        if (got < 0) return std::unexpected(WalkProblem::Failed);
        if (got == 0) return std::string_view();
        at_ = 0;
        end_ = static_cast<std::size_t>(got);
      }
      // struct linux_dirent64: its size after two numbers of 8 bytes, its name after the type.
      std::uint16_t size = 0;
      std::memcpy(&size, &buffer_[at_ + kSizeOffset], sizeof size);
      const char* const name = &buffer_[at_ + kNameOffset];
      at_ += size;
      if (*name >= '0' && *name <= '9') return std::string_view(name);
    }
  }

 private:
  static constexpr std::size_t kSizeOffset = 16;
  static constexpr std::size_t kNameOffset = 19;

  UniqueFd proc_;
  alignas(8) std::array<char, 1024> buffer_{};
  std::size_t at_ = 0;
  std::size_t end_ = 0;
};

}  // namespace

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
  PidListing proc;
  for (std::size_t found = 0; found <= count; ++found) {
    const auto name = proc.next();
    if (!name || name->empty()) return false;
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

std::expected<ProcessTable, WalkProblem> ProcessTable::read(Deadline deadline, std::size_t few) {
  std::vector<Process> processes;
  PidListing proc;
  while (true) {
    const bool is_late = std::chrono::steady_clock::now() > deadline;
    if (is_late && processes.size() >= few) return std::unexpected(WalkProblem::TooSlow);
    const auto name = proc.next();
    if (!name) return std::unexpected(WalkProblem::Failed);
    if (name->empty()) break;
    const std::string path = std::string(*name) + "/stat";
    const UniqueFd fd(::openat(proc.fd(), path.c_str(), O_RDONLY | O_CLOEXEC));
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
