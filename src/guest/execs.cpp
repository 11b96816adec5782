// SPDX-License-Identifier: Apache-2.0
#include "guest/execs.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace agbox::guest {
namespace {

using std::chrono::steady_clock;

// IDs have up to 200 bytes: far below the frame limit, and few messages for many IDs.
constexpr int kIdsPerMessage = 512;

}  // namespace

void Execs::start(const std::string& id, ExecOrder order) {
  if (!execs_.try_emplace(id).second) return;
  const std::uint64_t now = ticks_now();
  auto runner = start_runner(std::move(order), context_.null, context_.in_runner);
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
  if (found == runners_.end() || tree_killer_.has(id)) return;
  const auto& [pid, runner] = *found;
  // The runner reports whether the command had ended before. Root in the container may have stopped
  // it; if it hangs in the kernel, the grace period ends all the same.
  send_order(runner.channel.get(), {.kind = RunnerOrder::Kind::Cancel});
  ::kill(pid, SIGCONT);
  tree_killer_.kill(id, tree_of(pid), steady_clock::now() + grace);
}

Execs::RunnerProcess* Execs::runner_of(const std::string& id) {
  const auto found = std::ranges::find_if(runners_, [&](const auto& entry) {
    return entry.second.exec_id == id && entry.second.channel;
  });
  return found == runners_.end() ? nullptr : &found->second;
}

void Execs::attach_input(const std::string& id, std::uint64_t number, UniqueFd pipe) {
  attaches_.insert_or_assign(number, id);
  v1::InputAttached refusal;
  refusal.set_id(number);
  const RunnerProcess* runner = runner_of(id);
  if (runner == nullptr) {
    refusal.set_outcome(v1::InputAttached::OUTCOME_CLOSED);
    return report_attach(std::move(refusal));
  }
  RunnerOrder order{.kind = RunnerOrder::Kind::AttachInput, .number = number};
  order.pipe = std::move(pipe);
  const int problem = send_order(runner->channel.get(), order);
  if (problem == 0) return;
  if (problem == EPIPE || problem == ECONNRESET) {  // it has ended, and its report is unread
    refusal.set_outcome(v1::InputAttached::OUTCOME_CLOSED);
    return report_attach(std::move(refusal));
  }
  refusal.set_outcome(v1::InputAttached::OUTCOME_FAILED);
  refusal.set_detail(std::string("the process that runs the command does not take its input: ") +
                     std::strerror(problem));
  report_attach(std::move(refusal));
}

void Execs::report_attach(v1::InputAttached report) {
  if (attaches_.erase(report.id()) == 0) return;
  v1::ToDaemon message;
  *message.mutable_input_attached() = std::move(report);
  context_.send(message);
}

void Execs::close_channel(RunnerProcess& runner) {
  runner.channel.reset();
  std::vector<std::uint64_t> unread;
  for (const auto& [number, exec_id] : attaches_) {
    if (exec_id == runner.exec_id) unread.push_back(number);
  }
  for (const std::uint64_t number : unread) {
    v1::InputAttached report;
    report.set_id(number);
    report.set_outcome(v1::InputAttached::OUTCOME_CLOSED);
    report_attach(std::move(report));
  }
}

// It is refused only if root in the container has stopped the runner and left many orders unread.
void Execs::order_runner(const std::string& id, const RunnerOrder& order) {
  if (const RunnerProcess* runner = runner_of(id)) {
    static_cast<void>(send_order(runner->channel.get(), order));
  }
}

void Execs::end_input(const std::string& id) {
  order_runner(id, {.kind = RunnerOrder::Kind::EndInput});
}

void Execs::resize_terminal(const std::string& id, TerminalSize size) {
  order_runner(id, {.kind = RunnerOrder::Kind::Resize, .size = size});
}

void Execs::signal(const std::string& id, int number) {
  order_runner(id,
               {.kind = RunnerOrder::Kind::Signal, .number = static_cast<std::uint64_t>(number)});
}

void Execs::report_all() const {
  v1::ToDaemon known;
  known.mutable_execs_known();
  for (const auto& [id, exec] : execs_) {
    if (known.execs_known().exec_ids_size() == kIdsPerMessage) {
      known.mutable_execs_known()->set_more(true);
      context_.send(known);
      known.mutable_execs_known()->Clear();
    }
    known.mutable_execs_known()->add_exec_ids(id);
  }
  context_.send(known);
  for (const auto& [id, exec] : execs_) {
    v1::ToDaemon message;
    if (exec.end) {
      *message.mutable_exec_ended() = *exec.end;
    } else if (exec.truncated) {
      message.mutable_exec_truncated()->set_exec_id(id);
    } else {
      continue;
    }
    context_.send(message);
  }
}

void Execs::collect(Watches& watches) {
  for (const auto& [pid, runner] : runners_) {
    if (!runner.channel) continue;
    watches.add(runner.channel.get(), POLLIN, [this, pid] { receive(pid); });
  }
  tree_killer_.collect(watches);
}

void Execs::receive(pid_t pid) {
  const auto found = runners_.find(pid);
  if (found == runners_.end()) return;
  RunnerProcess& runner = found->second;
  while (runner.channel) {
    RunnerReport report;
    const Received received = receive_report(runner.channel.get(), report);
    if (received == Received::Packet) on_report(pid, runner, report);
    if (received == Received::NothingYet) return;
    if (received == Received::Closed) close_channel(runner);
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
      return context_.send(message);
    }
    case RunnerReport::Kind::CancelTaken:
      if (exec != execs_.end()) exec->second.cancel_taken = true;
      return tree_killer_.terminate(id, tree_of(pid));
    case RunnerReport::Kind::InputAttached:
      return report_attach(report.input);
    case RunnerReport::Kind::Ended: {
      close_channel(runner);
      v1::ExecEnded end = report.end;
      const bool is_killing = tree_killer_.is_killing(id);
      tree_killer_.end(id);
      if (is_killing && exec != execs_.end() && !exec->second.cancel_taken) {
        return hold_end(pid, id, exec->second, std::move(end));
      }
      return on_end(id, std::move(end));
    }
  }
}

// The runner could not take the cancel: it saw the command end by our SIGKILL, and did not wait for
// the rest of the tree.
void Execs::hold_end(pid_t pid, const std::string& id, Exec& exec, v1::ExecEnded end) {
  exec.cancel_taken = true;
  end.set_how(v1::ExecEnded::HOW_CANCELLED);
  end.set_code(0);
  exec.held_end = end;
  tree_killer_.kill(id, tree_of(pid), steady_clock::now(), [this, id, end] { on_end(id, end); });
}

void Execs::on_exit(pid_t pid, int status) {
  if (!runners_.contains(pid)) return;
  receive(pid);
  const auto runner = runners_.extract(pid);
  const std::string& id = runner.mapped().exec_id;
  const auto exec = execs_.find(id);
  if (exec == execs_.end() || exec->second.end) return;
  // By itself it ends only when no child is left.
  if (exec->second.held_end && WIFEXITED(status)) {
    tree_killer_.end(id);
    return on_end(id, *exec->second.held_end);
  }
  on_lost(runner.mapped(), exec->second, status);
}

// Its processes are our children now; nothing waits for their end or reads their output.
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
  tree_killer_.end(id);
  tree_killer_.kill(id, orphans_since(runner.start_ticks), steady_clock::now(),
                    [this, id, end] { on_end(id, end); });
}

// All descendants of a runner, without itself. Once it is reaped its pid may be reused.
TreeKiller::Members Execs::tree_of(pid_t runner) const {
  return [this, runner](const ProcessTable& table) {
    if (!runners_.contains(runner)) return std::vector<Process>();
    return table.with_descendants(table.children_of(runner));
  };
}

// What a lost runner leaves becomes our child. Its session does not identify it, because a process
// can start a new one; so it is every child that is no runner, not foreign, and not older than the
// runner. That includes all of them, and possibly children of another lost or ended runner, or a
// daemon that the image or someone outside started in the meantime.
TreeKiller::Members Execs::orphans_since(std::uint64_t start_ticks) const {
  return [this, start_ticks](const ProcessTable& table) {
    std::vector<Process> orphans = table.children_of(::getpid());
    std::erase_if(orphans, [&](const Process& child) {
      return child.start_ticks < start_ticks || runners_.contains(child.pid) ||
             context_.is_foreign(child);
    });
    return table.with_descendants(std::move(orphans));
  };
}

void Execs::on_end(const std::string& id, v1::ExecEnded end) {
  const auto exec = execs_.find(id);
  if (exec == execs_.end()) return;  // forgotten
  end.set_exec_id(id);
  exec->second.held_end.reset();
  exec->second.end = std::move(end);
  v1::ToDaemon message;
  *message.mutable_exec_ended() = *exec->second.end;
  context_.send(message);
}

void Execs::terminate_all() {
  for (const auto& [pid, runner] : runners_) {
    tree_killer_.terminate("runner " + std::to_string(pid), tree_of(pid));
  }
}

}  // namespace agbox::guest
