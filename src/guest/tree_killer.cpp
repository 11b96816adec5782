// SPDX-License-Identifier: Apache-2.0
#include "guest/tree_killer.h"

#include <signal.h>

#include <algorithm>

namespace agbox::guest {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Killed processes need a moment to disappear, and longer if blocked in the kernel.
constexpr milliseconds kFirstRecheck{1};
constexpr milliseconds kLongestRecheck{200};

void signal_all(const std::vector<Process>& processes, int number) {
  for (const Process& process : processes) ::kill(process.pid, number);
}

}  // namespace

void TreeKiller::kill(const std::string& name, Members members, Moment kill_at,
                      std::function<void()> none_left) {
  killings_.insert_or_assign(name, Killing{std::move(members), kill_at, std::move(none_left)});
}

void TreeKiller::terminate(const std::string& name, Members members) {
  to_terminate_.insert_or_assign(name, std::move(members));
}

void TreeKiller::end(const std::string& name) {
  to_terminate_.erase(name);
  killings_.erase(name);
}

bool TreeKiller::is_killing(const std::string& name) const {
  const auto found = killings_.find(name);
  return found != killings_.end() && found->second.begun;
}

void TreeKiller::collect(Watches& watches) const {
  if (!to_terminate_.empty()) watches.wake(std::max(steady_clock::now(), no_walk_before_));
  for (const auto& [name, killing] : killings_) {
    watches.wake(std::max(killing.next, no_walk_before_));
  }
}

void TreeKiller::work() {
  const Moment now = steady_clock::now();
  const bool is_due =
      !to_terminate_.empty() ||
      std::ranges::any_of(killings_, [&](const auto& entry) { return entry.second.next <= now; });
  if (!is_due || now < no_walk_before_) return;
  const std::optional<ProcessTable> table = walk_();
  if (!table) {
    no_walk_before_ = now + kLongestRecheck;
    return;
  }
  for (const auto& [name, members] : std::exchange(to_terminate_, {})) {
    signal_all(members(*table), SIGTERM);
  }
  std::vector<std::string> ended;
  for (auto& [name, killing] : killings_) {
    if (killing.next > now) continue;
    const std::vector<Process> members = killing.members(*table);
    if (members.empty() && killing.none_left) {
      ended.push_back(name);
    } else {
      advance(killing, members, now);
    }
  }
  for (const std::string& name : ended) {
    const auto killing = killings_.extract(name);
    if (killing) killing.mapped().none_left();
  }
}

void TreeKiller::advance(Killing& killing, const std::vector<Process>& members, Moment now) {
  killing.begun = true;
  bool has_new = false;
  for (const Process& process : members) {
    if (!killing.stopped.emplace(process.pid, process.start_ticks).second) continue;
    ::kill(process.pid, SIGSTOP);
    has_new = true;
  }
  if (has_new) {
    killing.next = now;
    return;
  }
  signal_all(members, SIGKILL);
  // Start over with what is left: another process may have continued it.
  killing.stopped.clear();
  killing.recheck_delay = std::clamp(2 * killing.recheck_delay, kFirstRecheck, kLongestRecheck);
  killing.next = now + killing.recheck_delay;
}

}  // namespace agbox::guest
