// SPDX-License-Identifier: Apache-2.0
// Ends whole trees of processes, whatever they do against it: SIGTERM, a grace, then SIGSTOP until
// a walk of /proc finds none that was not stopped yet, and only then SIGKILL. A tree that forks
// faster than it can be killed cannot fork while it stands still.
//
// Any number of trees share one walk, and the guest's loop makes one walk per round, so that it
// goes on serving between them.
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

class TreeEnd {
 public:
  // The processes that are to end, as far as a table shows them.
  using Members = std::function<std::vector<Process>(const ProcessTable&)>;

  // A walk that fails shows nothing; it is made again a little later.
  using Walk = std::function<std::optional<ProcessTable>()>;
  explicit TreeEnd(Walk walk = ProcessTable::read) : walk_(std::move(walk)) {}

  // From `kill_at` on it is killed, until end() or, where `none_left` is given, until a walk found
  // none any more, which is told. `none_left` may call anything here.
  void kill(const std::string& name, Members members, Moment kill_at,
            std::function<void()> none_left = {});
  // SIGTERM, once, with the next walk.
  void terminate(const std::string& name, Members members);
  void end(const std::string& name);
  // From kill() to its end.
  bool has(const std::string& name) const { return killings_.contains(name); }
  // Its grace is over.
  bool is_killing(const std::string& name) const;

  void collect(Watches& watches) const;
  // One walk, where one is due.
  void work();

 private:
  struct Killing {
    Members members;
    Moment next;
    std::function<void()> none_left;
    bool begun = false;
    std::set<std::pair<pid_t, std::uint64_t>> stopped{};  // by pid and start
    std::chrono::milliseconds pause{0};                   // before looking again after a SIGKILL
  };

  static void advance(Killing& killing, const std::vector<Process>& members, Moment now);

  Walk walk_;
  Moment no_walk_before_{};
  std::map<std::string, Members> to_terminate_;
  std::map<std::string, Killing> killings_;
};

}  // namespace agbox::guest
