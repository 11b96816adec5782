// SPDX-License-Identifier: Apache-2.0
#include "guest/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string>
#include <unordered_set>

#include "base/unique_fd.h"

namespace agbox::guest {
namespace {

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string_view take_word(std::string_view& text) {
  const std::size_t space = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, space);
  text.remove_prefix(std::min(space + 1, text.size()));
  return word;
}

}  // namespace

std::optional<pid_t> parent_in_stat(std::string_view stat) {
  // pid (name) S parent ...
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || stat.size() < name_end + 5) return std::nullopt;
  const std::string_view rest = stat.substr(name_end + 4);
  pid_t parent = 0;
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), parent);
  if (problem != std::errc() || parent < 0) return std::nullopt;
  return parent;
}

std::optional<pid_t> parent_of(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::array<char, 512> text;  // the parent is within the first 100 bytes
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got <= 0) return std::nullopt;
  return parent_in_stat({text.data(), static_cast<std::size_t>(got)});
}

std::optional<Process> process_in_stat(std::string_view stat) {
  // pid (name) state parent group session ... start, which is the 20th field after the name
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || stat.size() < name_end + 2) return std::nullopt;
  const auto pid = number_in<pid_t>(stat.substr(0, std::min(stat.find(' '), stat.size())));
  std::string_view rest = stat.substr(name_end + 2);
  std::array<std::string_view, 20> words;
  for (std::string_view& word : words) word = take_word(rest);
  const auto parent = number_in<pid_t>(words[1]);
  const auto session = number_in<pid_t>(words[3]);
  const auto start = number_in<std::uint64_t>(words[19]);
  if (!pid || !parent || !session || !start) return std::nullopt;
  return Process{*pid, *parent, *session, *start};
}

std::uint64_t ticks_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  constexpr std::uint64_t kNanosecondsPerTick = 1'000'000'000 / kTicksPerSecond;
  return static_cast<std::uint64_t>(now.tv_sec) * kTicksPerSecond +
         static_cast<std::uint64_t>(now.tv_nsec) / kNanosecondsPerTick;
}

std::optional<ProcessTable> ProcessTable::read() {
  std::vector<Process> processes;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (!proc) return std::nullopt;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(proc.get());
    if (entry == nullptr && errno != 0) return std::nullopt;
    if (entry == nullptr) break;
    if (!number_in<pid_t>(entry->d_name)) continue;
    const std::string path = std::string(entry->d_name) + "/stat";
    const UniqueFd fd(::openat(::dirfd(proc.get()), path.c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, 1024> text;
    const ssize_t got = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
    if (got < 0 && errno != ENOENT && errno != ESRCH) return std::nullopt;
    if (got <= 0) continue;  // it has ended
    if (const auto process = process_in_stat({text.data(), static_cast<std::size_t>(got)})) {
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
