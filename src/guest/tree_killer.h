// SPDX-License-Identifier: Apache-2.0
// Kills whole process trees, even fork bombs: SIGTERM, a grace period, then SIGSTOP until a walk of
// /proc finds no process that is not stopped, and only then SIGKILL. A stopped tree cannot fork
// faster than it is killed.
//
// Thousands of processes that never sleep leave us hardly any CPU time: a walk that takes 50 ms
// alone then takes minutes. So if a walk of many processes is too slow, or finds new ones again and
// again, one system call stops every process of the container, the walk is repeated without
// competitors, and then all but the killed ones continue. Other execs pause for that long; a
// process among them that was already stopped continues too. A tree that is such a crowd itself has
// no grace period.
//
// All trees share one walk, and the guest's loop makes one walk per iteration, so that it stays
// responsive.
#pragma once

#include <expected>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "guest/process_tree.h"
#include "guest/watch.h"

namespace agbox::guest {

class TreeKiller {
 public:
  // Selects the processes to kill from a table.
  using Members = std::function<std::vector<Process>(const ProcessTable&)>;

  // Signals every process of the container but this one, atomically: kill(-1, ...) of PID 1.
  using SignalEveryProcess = std::function<void(int signal)>;
  // A failed walk is repeated a little later.
  using Walk = std::function<std::expected<ProcessTable, WalkProblem>(Moment deadline)>;
  // If `signal_every_process` is empty, walks take as long as they take. `is_crowded`: a walk need
  // not even be tried, which would use up the little CPU time that we have.
  explicit TreeKiller(
      SignalEveryProcess signal_every_process,
      Walk walk = [](Moment deadline) { return ProcessTable::read(deadline); },
      std::function<bool()> is_crowded = is_cpu_crowded)
      : signal_every_process_(std::move(signal_every_process)),
        walk_(std::move(walk)),
        is_crowded_(std::move(is_crowded)) {}

  // Kills from `kill_at` on, or at once if it is a crowd, until end() or, if `none_left` is given,
  // until a walk finds no process any more; then calls it. `none_left` may call any method.
  void kill(const std::string& name, Members members, Moment kill_at,
            std::function<void()> none_left = {});
  // Sends SIGTERM once, with the next walk.
  void terminate(const std::string& name, Members members);
  void end(const std::string& name);
  // True between kill() and its end.
  bool has(const std::string& name) const { return killings_.contains(name); }
  // The grace period is over.
  bool is_killing(const std::string& name) const;

  void collect(Watches& watches) const;
  // Makes a walk if one is due.
  void work();

 private:
  struct Killing {
    Members members;
    Moment next;
    std::function<void()> none_left;
    bool begun = false;
    std::set<std::pair<pid_t, std::uint64_t>> signalled{};  // by pid and start
    int walks_with_new = 0;                                 // in a row
    std::chrono::milliseconds recheck_delay{0};             // before the next walk after a SIGKILL
  };

  void work_at_standstill(Moment now);
  static void continue_others(const ProcessTable& table, const std::vector<Process>& in_trees);
  // Returns the processes.
  std::vector<Process> terminate_trees(const ProcessTable& table);
  std::vector<Killing*> due_killings(const ProcessTable& table, Moment now);
  static void advance(Killing& killing, const ProcessTable& table, Moment now);
  // Returns whether there was a process that had not been signalled yet.
  static bool signal_new(Killing& killing, const std::vector<Process>& members, int number);
  static void begin_again(Killing& killing, Moment next);
  void report_ends();

  SignalEveryProcess signal_every_process_;
  Walk walk_;
  std::function<bool()> is_crowded_;
  Moment no_walk_before_{};
  std::map<std::string, Members> to_terminate_;
  std::map<std::string, Killing> killings_;
  std::vector<std::string> ended_;  // whose `none_left` is due
  bool has_crowd_ = false;          // one of them may be a crowd
};

}  // namespace agbox::guest
