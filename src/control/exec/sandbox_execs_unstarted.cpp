// SPDX-License-Identifier: Apache-2.0
// The part of a sandbox's execs that writes why one was never started to its output. That comes
// before its end: readers that follow get the line before their stream ends, and after a crash in
// between the exec is still running, so that the next daemon decides again and either sends it,
// which discards the line, or writes the line where it is not there yet.
#include <chrono>
#include <utility>

#include "base/failpoint.h"
#include "control/exec/sandbox_execs.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

// Files that do not respond delay the changes of their sandbox only this long, and then the line
// comes late. Less than a shutdown may take.
constexpr auto kLongestWaitForReasons = 2s;

}  // namespace

void SandboxExecs::end_unstarted(const std::string& exec_id, const ExecOutcome& outcome) {
  const RunningExec& exec = *find(exec_id);
  explain({{&place_of(exec), exec_id, exec.record, outcome.error_message}});
  end(exec_id, outcome);
}

void SandboxExecs::explain(std::vector<Unstarted> unstarted) {
  std::erase_if(unstarted, [](const Unstarted& exec) { return exec.reason.empty(); });  // cancelled
  if (unstarted.empty()) return;
  ++opening_;
  const auto is_done = std::make_shared<bool>(false);
  services_.tasks.spawn("reasons of execs", write_reasons(std::move(unstarted), is_done));
  services_.tasks.spawn("wait for reasons of execs", await_reasons(is_done, journal_.hold()));
}

asio::awaitable<void> SandboxExecs::write_reasons(std::vector<Unstarted> unstarted,
                                                  std::shared_ptr<bool> is_done) {
  AGBOX_FAILPOINT("exec.reason.before");
  for (const auto& [place, exec_id, record, reason] : unstarted) {
    const auto written = co_await place->explain_output(record, reason);
    if (!written) {
      log_.warn("exec was not started, and its stderr log cannot say why",
                {{"exec_id", exec_id}, {"error", written.error().message()}});
    }
  }
  AGBOX_FAILPOINT("exec.reason.after");
  --opening_;
  *is_done = true;
  changed_.notify();
}

asio::awaitable<void> SandboxExecs::await_reasons(std::shared_ptr<const bool> is_done,
                                                  std::function<void()> release) {
  // A shutdown waits too: what is not written by then would be lost.
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  const auto limit = std::chrono::steady_clock::now() + kLongestWaitForReasons;
  if (!co_await changed_.wait([&is_done] { return *is_done; }, limit)) {
    log_.warn("stderr logs of execs that were not started do not respond");
  }
  release();
}

}  // namespace agbox
