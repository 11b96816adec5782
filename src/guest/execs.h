// SPDX-License-Identifier: Apache-2.0
// The execs of a sandbox as the guest knows them, from StartExec to ForgetExec. An end is reported
// until it is forgotten, so an exec runs exactly once even if either side restarts.
//
// A runner process may outlive its exec, for processes that the command left in the background.
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
#include "guest/tree_killer.h"
#include "guest/watch.h"

namespace agbox::guest {

class Execs {
 public:
  struct Context {
    int null = -1;  // see start_runner()
    // Sends to the daemon; dropped while disconnected, report_all() follows then.
    std::function<void(const v1::ToDaemon&)> send;
    // Runs first in a new runner: drops what it must not know.
    std::function<void()> in_runner;
    // True for a child of ours, or an adopted one, that no exec started.
    std::function<bool(const Process&)> is_foreign;
    // See TreeKiller; empty if we are not PID 1.
    TreeKiller::SignalEveryProcess signal_every_process{};
  };

  explicit Execs(Context context)
      : context_(std::move(context)), tree_killer_(context_.signal_every_process) {}

  // No effect if the exec is known.
  void start(const std::string& id, ExecOrder order);
  // No effect if the exec is unknown, ended or being cancelled.
  void cancel(const std::string& id, std::chrono::milliseconds grace);
  void forget(const std::string& id) { execs_.erase(id); }

  // Reported with InputAttached in every case, unless cancel_attaches() comes first.
  void attach_input(const std::string& id, std::uint64_t number, UniqueFd pipe);
  // The daemon is not connected any more.
  void cancel_attaches() { attaches_.clear(); }
  // No effect on an exec that is unknown or has ended.
  void end_input(const std::string& id);
  void resize_terminal(const std::string& id, TerminalSize size);
  void signal(const std::string& id, int number);

  // For a daemon that has reconnected.
  void report_all() const;

  void collect(Watches& watches);
  // After each iteration of the loop.
  void work() { tree_killer_.work(); }
  // For any child of this process.
  void on_exit(pid_t pid, int status);

  // SIGTERM to all processes started by execs.
  void terminate_all();
  // Some process of an exec runs, if only in the background.
  bool any_runs() const { return !runners_.empty(); }
  // It has one, possibly ended, that is not forgotten.
  bool has_any() const { return !execs_.empty(); }

 private:
  struct Exec {
    bool cancel_taken = false;
    bool truncated = false;
    // What the runner reported while its tree was still being killed.
    std::optional<v1::ExecEnded> held_end;
    std::optional<v1::ExecEnded> end;  // with its ID
  };
  struct RunnerProcess {
    std::string exec_id;
    UniqueFd channel;  // until it has reported the end
    std::uint64_t start_ticks = 0;
  };

  RunnerProcess* runner_of(const std::string& id);
  void order_runner(const std::string& id, const RunnerOrder& order);
  void report_attach(v1::InputAttached report);
  // The runner reports nothing any more.
  void close_channel(RunnerProcess& runner);
  void receive(pid_t pid);
  void on_report(pid_t pid, RunnerProcess& runner, const RunnerReport& report);
  void hold_end(pid_t pid, const std::string& id, Exec& exec, v1::ExecEnded end);
  void on_lost(const RunnerProcess& runner, const Exec& exec, int status);
  void on_end(const std::string& id, v1::ExecEnded end);
  TreeKiller::Members tree_of(pid_t runner) const;
  TreeKiller::Members orphans_since(std::uint64_t start_ticks) const;

  Context context_;
  std::map<std::string, Exec> execs_;
  std::map<pid_t, RunnerProcess> runners_;
  TreeKiller tree_killer_;
  // Requested on this connection and not reported yet, and their execs.
  std::map<std::uint64_t, std::string> attaches_;
};

}  // namespace agbox::guest
