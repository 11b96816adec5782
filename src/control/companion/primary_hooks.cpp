// SPDX-License-Identifier: Apache-2.0
#include "control/companion/primary_hooks.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "async/cancellation.h"
#include "base/failpoint.h"
#include "base/uuid.h"
#include "control/exec/exec_environment.h"
#include "control/exec/exec_outcome.h"
#include "control/sandbox/operations/step.h"
#include "guestwire/place.h"
#include "model/reasons.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

constexpr auto kHookLimit = 5min;  // of one hook, from the moment at which the primary is up
constexpr auto kHookCancelGrace = 2s;
constexpr auto kHookRetry = 1s;
constexpr auto kGuestLimit = 30s;
constexpr auto kHookCancelLimit = 10s;  // for its processes to be gone

std::unexpected<Error> cancelled() {
  return fail(reason::kCancelled, "cancelled");
}

// Recognisable among the files of execs, and no ID that a client would choose.
std::string new_exec_id(const CompanionFacts& companion) {
  const unsigned number = companion.container.companion().hooks_done() + 1;
  return "hook-" + companion.name() + "-" + std::to_string(number) + "-" +
         random_uuid().substr(0, 8);
}

std::string title_of(const CompanionFacts& companion) {
  const auto& known = companion.container.companion();
  return "post_start_on_primary command " + std::to_string(known.hooks_done() + 1) + " of " +
         std::to_string(companion.spec.post_start_on_primary_size()) + " of " + companion.name();
}

}  // namespace

PrimaryHooks::PrimaryHooks(ActorServices& services, Sandbox sandbox, Logger log)
    : services_(services),
      sandbox_(sandbox),
      log_(std::move(log)),
      changed_(services.loop.io().get_executor()) {}

void PrimaryHooks::restore(const CompanionFacts& companion) {
  const auto& known = companion.container.companion();
  if (known.has_hook()) running_.try_emplace(known.hook().exec_id());
}

void PrimaryHooks::primary_is_up(std::uint64_t start_count) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  primary_start_ = start_count;
  changed_.notify();
}

asio::awaitable<Result<>> PrimaryHooks::run(CompanionFacts& companion) {
  const auto& known = companion.container.companion();
  const auto count = static_cast<unsigned>(companion.spec.post_start_on_primary_size());
  while (known.hooks_done() < count && !known.hooks_failed()) {
    AGBOX_CO_TRY_VOID(co_await run_next(companion));
  }
  co_return Result<>{};
}

asio::awaitable<Result<>> PrimaryHooks::run_next(CompanionFacts& companion) {
  const bool is_up =
      co_await changed_.wait([this] { return primary_start_ != 0; }, Condition::Deadline::max());
  if (!is_up) co_return cancelled();
  const auto& known = companion.container.companion();
  if (!known.has_hook()) {
    const auto begun = co_await begin(companion);
    if (co_await is_cancelled()) co_return cancelled();
    if (!begun) co_return co_await failed(companion, begun.error().message());
  }
  const auto end = co_await wait_for_end(companion);
  if (co_await is_cancelled()) co_return cancelled();
  if (!end) co_return co_await failed(companion, end.error().message());
  auto judged = co_await judge(companion, *end);
  if (co_await is_cancelled()) co_return cancelled();
  co_return judged;
}

// Recorded before it is sent.
asio::awaitable<Result<>> PrimaryHooks::begin(CompanionFacts& companion) {
  const std::string exec_id = new_exec_id(companion);
  AGBOX_CO_TRY(paths, co_await sandbox_.place.create_output(sandbox_.facts.created_with, exec_id));
  store::v1::Container::Hook& hook = *companion.container.mutable_companion()->mutable_hook();
  hook.set_exec_id(exec_id);
  hook.set_primary_start(primary_start_);
  hook.mutable_output()->set_output_root(paths.root);
  hook.mutable_output()->set_stdout_log_path(paths.stdout_path);
  hook.mutable_output()->set_stderr_log_path(paths.stderr_path);
  running_.try_emplace(exec_id);
  log_.info("hook started", {{"companion", companion.name()}, {"exec_id", exec_id}});
  const auto stored = co_await step("hook.commit", store(companion));
  if (!stored) co_return fail(reason::kEngineRefused, stored.error().message());
  co_return Result<>{};
}

asio::awaitable<Result<>> PrimaryHooks::send(const CompanionFacts& companion) {
  const auto& known = companion.container.companion();
  const std::string exec_id = known.hook().exec_id();
  AGBOX_CO_TRY_VOID(co_await sandbox_.place.open_output(exec_id, known.hook().output()));
  const ExecOrder order{
      .exec_id = exec_id,
      .command = {"sh", "-lc",
                  companion.spec.post_start_on_primary(static_cast<int>(known.hooks_done()))},
      .working_directory = guestwire::kWorkspace,
      .environment =
          exec_environment(sandbox_.facts.spec.create_spec.envs(), companion.spec.envs()),
      .output_limit_bytes = sandbox_.facts.created_with.exec_output_max_bytes()};
  const auto sent = sandbox_.place.start_exec(order);
  sandbox_.place.close_output(exec_id);
  AGBOX_FAILPOINT("hook.send.after");
  if (!sent) {
    // It is sent again when the guest is back.
    log_.warn("hook waits for the guest to come back",
              {{"exec_id", exec_id}, {"error", sent.error().message()}});
  }
  running_.at(exec_id).is_with_guest = sent.has_value();
  co_return Result<>{};
}

asio::awaitable<Result<ExecEnd>> PrimaryHooks::wait_for_end(const CompanionFacts& companion) {
  const std::string exec_id = companion.container.companion().hook().exec_id();
  const std::uint64_t its_start = companion.container.companion().hook().primary_start();
  Running& hook = running_.try_emplace(exec_id).first->second;
  auto limit = std::chrono::steady_clock::now() + kHookLimit;
  bool is_late = false;
  while (!hook.end) {
    if (co_await is_cancelled()) co_return cancelled();
    if (primary_start_ != its_start) {
      co_return fail(reason::kEngineRefused, "the primary container ended while it ran");
    }
    const bool is_connected = sandbox_.place.is_connected();
    if (!hook.is_with_guest && is_connected) AGBOX_CO_TRY_VOID(co_await send(companion));
    const auto has_changed = [this, &hook, its_start, is_connected] {
      return hook.end || primary_start_ != its_start ||
             is_connected != sandbox_.place.is_connected();
    };
    // What could not be sent is tried again; a guest that does not come back has gone with its
    // container.
    const auto retry = std::chrono::steady_clock::now() + (is_connected ? kHookRetry : kGuestLimit);
    const bool is_running = is_connected && hook.is_with_guest;
    if (co_await changed_.wait(has_changed, is_running ? limit : std::min(limit, retry))) continue;
    if (co_await is_cancelled()) co_return cancelled();
    if (!is_connected) {
      co_return fail(reason::kEngineRefused, "the primary container's guest is not connected");
    }
    if (!is_running && std::chrono::steady_clock::now() < limit) continue;
    if (is_late) {
      co_return fail(reason::kEngineRefused, "it did not end within 5m and could not be ended");
    }
    is_late = true;
    limit = std::chrono::steady_clock::now() + kHookCancelLimit;
    if (const auto sent = sandbox_.place.cancel_exec(exec_id, kHookCancelGrace); !sent) {
      log_.warn("hook cannot be ended", {{"exec_id", exec_id}, {"error", sent.error().message()}});
    }
  }
  if (is_late) co_return fail(reason::kEngineRefused, "it did not end within 5m");
  co_return *hook.end;
}

asio::awaitable<Result<>> PrimaryHooks::judge(CompanionFacts& companion, ExecEnd end) {
  const ExecOutcome outcome = outcome_of(end, /*was_cancel_requested=*/false);
  if (outcome.state != v1::EXEC_STATE_FINISHED) {
    co_return co_await failed(companion, outcome.error_message);
  }
  log_.info("hook finished", {{"companion", companion.name()}, {"exec_id", end.exec_id}});
  auto& known = *companion.container.mutable_companion();
  known.set_hooks_done(known.hooks_done() + 1);
  known.clear_hook();
  const auto stored = co_await step("hook.end_commit", store(companion));
  if (!stored) co_return fail(reason::kEngineRefused, stored.error().message());
  forget(end.exec_id);
  co_return Result<>{};
}

// With what it printed last, and where all of it is.
asio::awaitable<Result<>> PrimaryHooks::failed(CompanionFacts& companion, std::string how) {
  auto& known = *companion.container.mutable_companion();
  std::string message = title_of(companion) + " failed: " + how;
  const std::string exec_id = known.hook().exec_id();
  if (known.has_hook()) {
    const std::string tail = co_await sandbox_.place.output_tail(known.hook().output());
    if (!tail.empty()) message += "; its output ends with: " + tail;
    message += "; its output is in " + known.hook().output().stdout_log_path() + " and " +
               known.hook().output().stderr_log_path();
  }
  log_.warn("hook failed", {{"companion", companion.name()}, {"error", message}});
  known.set_hooks_failed(true);
  known.clear_hook();
  AGBOX_CO_TRY_VOID(co_await store(companion));
  if (!exec_id.empty()) forget(exec_id);
  co_return fail(reason::kHookFailed, message);
}

// Through the journal, so that no older record of the companion comes after it.
asio::awaitable<Result<>> PrimaryHooks::store(const CompanionFacts& companion) {
  const auto on_disk = sandbox_.journal.append(
      {change::PutContainer{companion.sandbox_id, companion.name(), companion.container}},
      Urgency::GoesOn);
  co_return co_await on_disk.wait();
}

// If it fails, the guest reports the end again on its next connect, and gets ForgetExec then.
void PrimaryHooks::forget(const std::string& exec_id) {
  running_.erase(exec_id);
  if (!sandbox_.place.is_connected()) return;
  if (const auto sent = sandbox_.place.forget_exec(exec_id); !sent) {
    log_.debug("hook is forgotten later",
               {{"exec_id", exec_id}, {"error", sent.error().message()}});
  }
}

// --- reports of the guest ---

void PrimaryHooks::guest_connected(const GuestHello& hello) {
  for (auto& [exec_id, hook] : running_) {
    hook.is_with_guest = std::ranges::find(hello.execs, exec_id) != hello.execs.end();
  }
  changed_.notify();
}

void PrimaryHooks::guest_lost() {
  for (auto& [exec_id, hook] : running_) hook.is_with_guest = false;
}

void PrimaryHooks::ended(const ExecEnd& end) {
  running_.at(end.exec_id).end = end;
  changed_.notify();
}

void PrimaryHooks::not_sent(const std::string& exec_id, const std::string& why) {
  ended({.exec_id = exec_id, .how = ExecEnd::How::NotStarted, .detail = why});
}

}  // namespace agbox
