// SPDX-License-Identifier: Apache-2.0
// The execs of a sandbox as the guest knows them: from the daemon's StartExec to its ForgetExec,
// with an end that is told until it is forgotten. Whoever dies in between, an exec runs once.
//
// The processes are another matter: a runner may outlive its exec, for what the command left
// running in the background.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "agbox/guest/v1/link.pb.h"
#include "base/unique_fd.h"
#include "guest/process_tree.h"
#include "guest/runner.h"
#include "guest/runner_channel.h"
#include "guest/tree_end.h"
#include "guest/watch.h"

namespace agbox::guest {

class Execs {
 public:
  struct Surroundings {
    int null = -1;  // see start_runner()
    // To the daemon; lost while there is none, who is then told by tell_all().
    std::function<void(const v1::ToDaemon&)> tell;
    // In a new runner: what it must not know.
    std::function<void()> in_runner;
    // A child of ours, or what became one, that no exec started.
    std::function<bool(const Process&)> is_foreign;
  };

  explicit Execs(Surroundings surroundings) : around_(std::move(surroundings)) {}

  // Of one that is known: nothing happens.
  void start(const std::string& id, ExecOrder order);
  // Of one that is not known, has ended, or is being cancelled: nothing happens.
  void cancel(const std::string& id, std::chrono::milliseconds grace);
  void forget(const std::string& id) { execs_.erase(id); }

  // To a daemon that was away.
  void tell_all() const;

  void collect(Watches& watches);
  // After each round of the loop.
  void work() { tree_end_.work(); }
  // Of any child of this process.
  void on_exit(pid_t pid, int status);

  // SIGTERM to all that came from execs.
  void terminate_all();
  // Something of an exec runs, if only in the background.
  bool any_runs() const { return !runners_.empty(); }

 private:
  struct Exec {
    bool cancel_taken = false;
    bool truncated = false;
    std::optional<v1::ExecEnded> end;  // with its id
  };
  struct RunnerProcess {
    std::string exec_id;
    UniqueFd channel;  // until it has told the end
    std::uint64_t start_ticks = 0;
  };

  void hear(pid_t pid);
  void on_report(pid_t pid, RunnerProcess& runner, const RunnerReport& report);
  void on_lost(const RunnerProcess& runner, const Exec& exec, int status);
  void on_end(const std::string& id, v1::ExecEnded end);
  TreeEnd::Members orphans_since(std::uint64_t start_ticks) const;

  Surroundings around_;
  std::map<std::string, Exec> execs_;
  std::map<pid_t, RunnerProcess> runners_;
  TreeEnd tree_end_;
};

}  // namespace agbox::guest
