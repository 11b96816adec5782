// SPDX-License-Identifier: Apache-2.0
#include "guest/tree_killer.h"

#include <signal.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>

namespace agbox::guest {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Killed processes need a moment to disappear, and longer if blocked in the kernel.
constexpr milliseconds kFirstRecheck{1};
constexpr milliseconds kLongestRecheck{200};
// More than a walk of 4,096 processes takes, unless they leave us no CPU time.
constexpr milliseconds kWalkLimit{100};
constexpr int kMaxWalksWithNew = 8;
// A tree of so many processes, next to which we get no CPU time, has no grace period: we would not
// notice its end.
constexpr std::size_t kCrowd = 256;

void signal_all(const std::vector<Process>& processes, int number) {
  for (const Process& process : processes) ::kill(process.pid, number);
}

}  // namespace

void TreeKiller::kill(const std::string& name, Members members, Moment kill_at,
                      std::function<void()> none_left) {
  killings_.insert_or_assign(name, Killing{std::move(members), kill_at, std::move(none_left)});
  if (signal_every_process_ && is_crowded_()) has_crowd_ = true;
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
  if (has_crowd_ || !to_terminate_.empty())
    watches.wake(std::max(steady_clock::now(), no_walk_before_));
  for (const auto& [name, killing] : killings_) {
    watches.wake(std::max(killing.next, no_walk_before_));
  }
}

void TreeKiller::work() {
  const Moment now = steady_clock::now();
  const auto is_due = [&](const auto& entry) { return entry.second.next <= now; };
  if (!has_crowd_ && to_terminate_.empty() && std::ranges::none_of(killings_, is_due)) return;
  if (now < no_walk_before_) return;
  const bool can_stop_all = signal_every_process_ != nullptr;
  const bool resists = std::ranges::any_of(killings_, [&](const auto& entry) {
    return is_due(entry) && entry.second.walks_with_new >= kMaxWalksWithNew;
  });
  if (can_stop_all && (has_crowd_ || resists || is_crowded_())) return work_at_standstill(now);
  const auto table = walk_(can_stop_all ? now + kWalkLimit : Moment::max());
  if (!table && table.error() == WalkProblem::TooSlow) return work_at_standstill(now);
  if (!table) {
    no_walk_before_ = now + kLongestRecheck;
    return;
  }
  terminate_trees(*table);
  for (Killing* killing : due_killings(*table, now)) advance(*killing, *table, now);
  report_ends();
}

// The kernel delivers a signal to all processes as if it came before or after each fork, never in
// between: nothing is left running. A child that was being created may become visible only after a
// walk; so walks are repeated until one finds no new member. By then every parent has a SIGKILL,
// and no fork succeeds any more.
void TreeKiller::work_at_standstill(Moment now) {
  has_crowd_ = false;
  signal_every_process_(SIGSTOP);
  auto table = walk_(Moment::max());
  std::vector<Process> in_trees;
  std::vector<Killing*> killings;
  if (table) {
    in_trees = terminate_trees(*table);
    for (auto& [name, killing] : killings_) {
      if (killing.members(*table).size() > kCrowd) killing.next = std::min(killing.next, now);
    }
    killings = due_killings(*table, now);
  }
  bool has_new = !killings.empty();
  for (int walks = 0; walks < kMaxWalksWithNew && has_new && table; ++walks) {
    has_new = false;
    for (Killing* killing : killings) {
      if (signal_new(*killing, killing->members(*table), SIGKILL)) has_new = true;
    }
    if (has_new) table = walk_(Moment::max());
  }
  // They need the CPU to end, which another standstill would not speed up.
  for (Killing* killing : killings) begin_again(*killing, steady_clock::now() + kLongestRecheck);
  if (table) {
    for (Killing* killing : killings)
      std::ranges::copy(killing->members(*table), std::back_inserter(in_trees));
    continue_others(*table, in_trees);
  } else {
    no_walk_before_ = steady_clock::now() + kLongestRecheck;
  }
  signal_every_process_(SIGCONT);
  report_ends();
}

// One by one, children first: a parent that already runs would see that they are stopped. The trees
// themselves continue all at once afterwards, with what the walk has missed: one by one the first
// of them would take the CPU from us.
void TreeKiller::continue_others(const ProcessTable& table, const std::vector<Process>& in_trees) {
  std::unordered_set<pid_t> excluded;
  for (const Process& process : in_trees) excluded.insert(process.pid);
  std::vector<Process> others = table.with_descendants(table.children_of(0));
  std::erase_if(others, [&](const Process& process) { return excluded.contains(process.pid); });
  std::ranges::reverse(others);
  signal_all(others, SIGCONT);
}

std::vector<Process> TreeKiller::terminate_trees(const ProcessTable& table) {
  std::vector<Process> terminated;
  for (const auto& [name, members] : std::exchange(to_terminate_, {})) {
    std::ranges::copy(members(table), std::back_inserter(terminated));
  }
  signal_all(terminated, SIGTERM);
  return terminated;
}

// Those that have members. The others are over if they wait for that.
std::vector<TreeKiller::Killing*> TreeKiller::due_killings(const ProcessTable& table, Moment now) {
  std::vector<Killing*> due;
  for (auto& [name, killing] : killings_) {
    if (killing.next > now) continue;
    if (killing.none_left && killing.members(table).empty()) {
      ended_.push_back(name);
      continue;
    }
    killing.begun = true;
    due.push_back(&killing);
  }
  return due;
}

void TreeKiller::advance(Killing& killing, const ProcessTable& table, Moment now) {
  const std::vector<Process> members = killing.members(table);
  if (signal_new(killing, members, SIGSTOP)) {
    ++killing.walks_with_new;
    killing.next = now;
    return;
  }
  signal_all(members, SIGKILL);
  killing.recheck_delay = std::clamp(2 * killing.recheck_delay, kFirstRecheck, kLongestRecheck);
  begin_again(killing, now + killing.recheck_delay);
}

bool TreeKiller::signal_new(Killing& killing, const std::vector<Process>& members, int number) {
  bool has_new = false;
  for (const Process& process : members) {
    if (!killing.signalled.emplace(process.pid, process.start_ticks).second) continue;
    ::kill(process.pid, number);
    has_new = true;
  }
  return has_new;
}

// With what is left: another process may have continued it.
void TreeKiller::begin_again(Killing& killing, Moment next) {
  killing.signalled.clear();
  killing.walks_with_new = 0;
  killing.next = next;
}

void TreeKiller::report_ends() {
  for (const std::string& name : std::exchange(ended_, {})) {
    const auto killing = killings_.extract(name);
    if (killing) killing.mapped().none_left();
  }
}

}  // namespace agbox::guest
