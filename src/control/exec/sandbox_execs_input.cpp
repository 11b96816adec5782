// SPDX-License-Identifier: Apache-2.0
// The part of a sandbox's execs that decides who writes to their input, and passes on what concerns
// terminals. Nothing of it is stored: the input itself goes from the writer through a pipe to the
// exec's runner, which knows how much it got and continues while the daemon restarts.
#include <chrono>
#include <utility>

#include "async/await_callback.h"
#include "async/cancellation.h"
#include "base/failpoint.h"
#include "control/exec/sandbox_execs.h"
#include "model/reasons.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

// A guest reconnects within a second or two after a restart of the daemon.
constexpr auto kLongestWaitForGuest = 10s;

}  // namespace

asio::awaitable<Result<ExecInput>> SandboxExecs::attach_input(
    std::string exec_id, std::shared_ptr<const InputWriter> writer) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  const RunningExec* exec = find(exec_id);
  AGBOX_CHECK(exec != nullptr && exec->shown, "only an exec that is shown takes input");
  if (!has_input(exec->shown->request)) {
    co_return fail(
        reason::kExecHasNoInput,
        "exec " + exec_id +
            " has no input: it was created without stdin or a terminal (agbox exec run -i)",
        {{"exec_id", exec_id}});
  }
  ++opening_;  // the place must outlive the wait
  auto input = co_await take_input(exec_id, std::move(writer));
  --opening_;
  co_return input;
}

asio::awaitable<Result<ExecInput>> SandboxExecs::take_input(
    std::string exec_id, std::shared_ptr<const InputWriter> writer) {
  if (const auto former = std::exchange(find(exec_id)->writer, writer).lock()) {
    AGBOX_FAILPOINT("exec.take_over.before");
    co_await await_callback<bool>(
        [former](const auto& done) { former->take_over([done] { done(true); }); });
    AGBOX_FAILPOINT("exec.take_over.after");
  }
  const auto is_reachable = [this, &exec_id] {
    const RunningExec* exec = find(exec_id);
    return this->is_reachable(exec->guest) && exec->may_run && !exec->is_opening;
  };
  const auto is_decided = [&] { return !check_writes(exec_id, writer.get()) || is_reachable(); };
  AGBOX_FAILPOINT("exec.attach.before");
  const auto limit = std::chrono::steady_clock::now() + kLongestWaitForGuest;
  const bool is_in_time = co_await changed_.wait(is_decided, limit);
  if (!is_in_time && co_await is_cancelled()) co_return std::unexpected(shutting_down());
  AGBOX_CO_TRY_VOID(check_writes(exec_id, writer.get()));
  if (!is_in_time) {
    co_return fail(reason::kSandboxNotReady,
                   "sandbox " + journal_.sandbox_id() +
                       " does not take input: its guest is not connected; attach again later",
                   {{"sandbox_id", journal_.sandbox_id()}});
  }
  auto input = co_await place_of(*find(exec_id)).attach_input(exec_id);
  AGBOX_FAILPOINT("exec.attach.after");
  AGBOX_CO_TRY_VOID(check_writes(exec_id, writer.get()));
  co_return input;
}

Result<> SandboxExecs::check_writes(const std::string& exec_id, const InputWriter* writer) const {
  const auto found = execs_.find(exec_id);
  if (found == execs_.end() || !found->second.shown || found->second.is_ending) {
    return std::unexpected(exec_already_terminal(exec_id));
  }
  if (found->second.writer.lock().get() == writer) return {};
  return fail(reason::kExecInputTaken, "another client took over the input of exec " + exec_id,
              {{"exec_id", exec_id}});
}

Result<> SandboxExecs::end_input(const std::string& exec_id, const InputWriter* writer) {
  AGBOX_TRY_VOID(check_writes(exec_id, writer));
  return place_of(*find(exec_id)).end_input(exec_id);
}

Result<> SandboxExecs::resize_terminal(const std::string& exec_id, TerminalSize size) {
  const RunningExec* exec = find(exec_id);
  if (exec == nullptr || !exec->shown) return std::unexpected(exec_already_terminal(exec_id));
  if (!exec->shown->request.has_terminal()) {
    return fail(
        reason::kExecHasNoTerminal,
        "exec " + exec_id + " has no terminal: it was created without one (agbox exec run -t)",
        {{"exec_id", exec_id}});
  }
  return place_of(*exec).resize_terminal(exec_id, size);
}

Result<> SandboxExecs::signal(const std::string& exec_id, int number) {
  const RunningExec* exec = find(exec_id);
  if (exec == nullptr || !exec->shown) return std::unexpected(exec_already_terminal(exec_id));
  return place_of(*exec).signal_exec(exec_id, number);
}

}  // namespace agbox
