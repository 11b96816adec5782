// SPDX-License-Identifier: Apache-2.0
#include "guest/execs.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace agbox::guest {
namespace {

using std::chrono::steady_clock;

// Ids have up to 200 bytes: far from a frame's limit, and few messages for many ids.
constexpr int kIdsPerMessage = 512;

// All below a runner, without itself. The runner lives or is not reaped yet: its number is its own.
TreeEnd::Members tree_of(pid_t runner) {
  return [runner](const ProcessTable& table) {
    return table.with_descendants(table.children_of(runner));
  };
}

}  // namespace

void Execs::start(const std::string& id, ExecOrder order) {
  if (!execs_.try_emplace(id).second) return;
  const std::uint64_t now = ticks_now();
  auto runner = start_runner(std::move(order), around_.null, around_.in_runner);
  if (runner) {
    runners_.insert_or_assign(runner->pid, RunnerProcess{id, std::move(runner->channel), now});
    return;
  }
  v1::ExecEnded end;
  end.set_how(v1::ExecEnded::HOW_NOT_STARTED);
  end.set_code(runner.error().code);
  end.set_detail(runner.error().reason);
  on_end(id, std::move(end));
}

void Execs::cancel(const std::string& id, std::chrono::milliseconds grace) {
  const auto found = std::ranges::find_if(runners_, [&](const auto& entry) {
    return entry.second.exec_id == id && entry.second.channel;
  });
  if (found == runners_.end() || tree_end_.has(id)) return;
  const auto& [pid, runner] = *found;
  // The runner says whether the command had ended before. Container root may have stopped it; and
  // where it hangs in the kernel together with the command, the grace ends all the same.
  send_cancel(runner.channel.get());
  ::kill(pid, SIGCONT);
  tree_end_.kill(id, tree_of(pid), steady_clock::now() + grace);
}

void Execs::tell_all() const {
  v1::ToDaemon known;
  known.mutable_execs_known();
  for (const auto& [id, exec] : execs_) {
    if (known.execs_known().exec_ids_size() == kIdsPerMessage) {
      known.mutable_execs_known()->set_more(true);
      around_.tell(known);
      known.mutable_execs_known()->Clear();
    }
    known.mutable_execs_known()->add_exec_ids(id);
  }
  around_.tell(known);
  for (const auto& [id, exec] : execs_) {
    v1::ToDaemon message;
    if (exec.end) {
      *message.mutable_exec_ended() = *exec.end;
    } else if (exec.truncated) {
      message.mutable_exec_truncated()->set_exec_id(id);
    } else {
      continue;
    }
    around_.tell(message);
  }
}

void Execs::collect(Watches& watches) {
  for (const auto& [pid, runner] : runners_) {
    if (!runner.channel) continue;
    watches.add(runner.channel.get(), POLLIN, [this, pid] { hear(pid); });
  }
  tree_end_.collect(watches);
}

void Execs::hear(pid_t pid) {
  const auto found = runners_.find(pid);
  if (found == runners_.end()) return;
  RunnerProcess& runner = found->second;
  while (runner.channel) {
    RunnerReport report;
    const Heard heard = receive_report(runner.channel.get(), report);
    if (heard == Heard::Something) on_report(pid, runner, report);
    if (heard == Heard::NothingYet) return;
    if (heard == Heard::NothingMore) runner.channel.reset();
  }
}

void Execs::on_report(pid_t pid, RunnerProcess& runner, const RunnerReport& report) {
  const std::string& id = runner.exec_id;
  const auto exec = execs_.find(id);
  switch (report.kind) {
    case RunnerReport::Kind::Truncated: {
      if (exec == execs_.end()) return;
      exec->second.truncated = true;
      v1::ToDaemon message;
      message.mutable_exec_truncated()->set_exec_id(id);
      return around_.tell(message);
    }
    case RunnerReport::Kind::CancelTaken:
      if (exec != execs_.end()) exec->second.cancel_taken = true;
      return tree_end_.terminate(id, tree_of(pid));
    case RunnerReport::Kind::Ended: {
      runner.channel.reset();
      v1::ExecEnded end = report.end;
      // Where the runner could not even take the cancel, it saw the command end by our SIGKILL.
      if (tree_end_.is_killing(id)) {
        end.set_how(v1::ExecEnded::HOW_CANCELLED);
        end.set_code(0);
      }
      tree_end_.end(id);
      return on_end(id, std::move(end));
    }
  }
}

void Execs::on_exit(pid_t pid, int status) {
  if (!runners_.contains(pid)) return;
  hear(pid);
  const auto runner = runners_.extract(pid);
  const auto exec = execs_.find(runner.mapped().exec_id);
  if (exec != execs_.end() && !exec->second.end) on_lost(runner.mapped(), exec->second, status);
}

// What it ran is ours now, and has nobody who waits for its end or takes its output.
void Execs::on_lost(const RunnerProcess& runner, const Exec& exec, int status) {
  const std::string& id = runner.exec_id;
  v1::ExecEnded end;
  end.set_output_truncated(exec.truncated);
  if (exec.cancel_taken) {
    end.set_how(v1::ExecEnded::HOW_CANCELLED);
  } else {
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    end.set_how(v1::ExecEnded::HOW_RUNNER_LOST);
    end.set_code(signal);
    end.set_detail("the process that ran the command was ended by signal " +
                   std::to_string(signal) +
                   ", by container root or for want of memory; what it ran was killed");
  }
  tree_end_.end(id);
  tree_end_.kill(id, orphans_since(runner.start_ticks), steady_clock::now(),
                 [this, id, end] { on_end(id, end); });
}

// What a lost runner leaves becomes our own child. By its session alone it cannot be known, because
// a process may begin a new one; so it is every child that is no runner, no foreign one, and not
// older than the runner. That is all of it, and may be more: a child of another lost runner or of
// one that has ended already, and a daemon that the image or somebody from outside the sandbox has
// started meanwhile.
TreeEnd::Members Execs::orphans_since(std::uint64_t start_ticks) const {
  return [this, start_ticks](const ProcessTable& table) {
    std::vector<Process> orphans = table.children_of(::getpid());
    std::erase_if(orphans, [&](const Process& child) {
      return child.start_ticks < start_ticks || runners_.contains(child.pid) ||
             around_.is_foreign(child);
    });
    return table.with_descendants(std::move(orphans));
  };
}

void Execs::on_end(const std::string& id, v1::ExecEnded end) {
  const auto exec = execs_.find(id);
  if (exec == execs_.end()) return;  // forgotten
  end.set_exec_id(id);
  exec->second.end = std::move(end);
  v1::ToDaemon message;
  *message.mutable_exec_ended() = *exec->second.end;
  around_.tell(message);
}

void Execs::terminate_all() {
  for (const auto& [pid, runner] : runners_) {
    tree_end_.terminate("runner " + std::to_string(pid), tree_of(pid));
  }
}

}  // namespace agbox::guest
