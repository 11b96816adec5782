// SPDX-License-Identifier: Apache-2.0
// Kills whole process trees, even fork bombs: SIGTERM, a grace period, then SIGSTOP until a walk of
// /proc finds no process that is not stopped, and only then SIGKILL. A stopped tree cannot fork
// faster than it is killed.
//
// All trees share one walk, and the guest's loop makes one walk per iteration, so that it stays
// responsive.
#pragma once

#include <functional>
#include <map>
#include <optional>
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

  // A failed walk is repeated a little later.
  using Walk = std::function<std::optional<ProcessTable>()>;
  explicit TreeKiller(Walk walk = ProcessTable::read) : walk_(std::move(walk)) {}

  // Kills from `kill_at` on, until end() or, if `none_left` is given, until a walk finds no process
  // any more; then calls it. `none_left` may call any method.
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
    std::set<std::pair<pid_t, std::uint64_t>> stopped{};  // by pid and start
    std::chrono::milliseconds recheck_delay{0};           // before the next walk after a SIGKILL
  };

  static void advance(Killing& killing, const std::vector<Process>& members, Moment now);

  Walk walk_;
  Moment no_walk_before_{};
  std::map<std::string, Members> to_terminate_;
  std::map<std::string, Killing> killings_;
};

}  // namespace agbox::guest
