// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/run_operation.h"

#include <chrono>
#include <utility>

#include "async/cancellation.h"
#include "control/commit.h"
#include "control/sandbox/operations/inspect.h"
#include "control/sandbox/operations/materialize.h"
#include "control/sandbox/operations/resume.h"
#include "control/sandbox/operations/stop.h"
#include "control/sandbox/operations/teardown.h"
#include "model/reasons.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

constexpr auto kUndoLimit = 30s;

class Run {
 public:
  Run(OperationServices& services, OperationRun run, Logger log)
      : services_(services),
        run_(std::move(run)),
        log_(std::move(log)),
        report_{.facts = std::move(run_.facts), .guest_directory = run_.guest_directory} {}

  asio::awaitable<OperationReport> to_its_end() {
    report_.result = co_await operation();
    if (!report_.result && is_definite(report_.result.error())) {
      report_.engine_remark = co_await services_.engine.remark_on_refusal();
    }
    co_return std::move(report_);
  }

 private:
  SandboxFacts& facts() { return report_.facts; }

  asio::awaitable<OperationResult<>> operation() {
    // The decision must be on disk before anything is done: otherwise a crash could neither
    // continue the operation nor count it.
    AGBOX_CO_TRY_VOID(co_await run_.decision.wait());
    // Awaits in parallel, such as an undo and its time limit, do not inherit an earlier
    // cancellation.
    if (co_await is_cancelled()) {
      co_return std::unexpected(OperationFailure(OperationEnd::Cancelled, "cancelled"));
    }
    if (!leaves_companions(run_.kind)) co_await quiesce_companions();
    switch (run_.kind) {
      case OperationKind::Create:
        co_return co_await create();
      case OperationKind::StartOver:
        AGBOX_CO_TRY_VOID(co_await teardown(services_, run_.place, facts()));
        co_return co_await create();
      case OperationKind::UndoCreate:
        co_return co_await remove_objects(
            teardown_within(services_, run_.place, facts(), kUndoLimit));
      case OperationKind::Resume:
        run_.companions.primary_is_up(0);
        run_.companions.begin(CompanionBegin::Resume, run_.progress);
        co_return co_await start();
      case OperationKind::UndoResume:
        co_return co_await stopped(undo_resume(services_, run_.place, facts()));
      case OperationKind::Stop:
        co_return co_await stopped(stop_sandbox(services_, run_.place, facts(), run_.execs));
      case OperationKind::Delete:
      case OperationKind::CleanUp:
        co_return co_await remove_objects(teardown(services_, run_.place, facts()));
      case OperationKind::Inspect:
        co_return co_await inspect();
      case OperationKind::Restart:
        co_return co_await restart();
      case OperationKind::Halt:
        co_return co_await halt_sandbox(services_, facts());
      case OperationKind::Pause:
        co_return co_await pause();
      case OperationKind::Unpause:
        co_return co_await services_.engine.unpause(facts());
    }
  }

  // What runs on is supervised on: these concern the primary alone.
  static bool leaves_companions(OperationKind kind) {
    return kind == OperationKind::Inspect || kind == OperationKind::Restart;
  }

  // Nothing is started behind the operation's back, and it knows all containers.
  asio::awaitable<void> quiesce_companions() {
    co_await run_.companions.quiesce();
    for (auto& [name, container] : run_.companions.containers()) {
      facts().containers[name] = std::move(container);
    }
  }

  asio::awaitable<OperationResult<>> create() {
    co_return co_await materialize(services_, run_.place, facts(), run_.companions, run_.progress);
  }

  asio::awaitable<OperationResult<>> start() {
    auto started = co_await resume_sandbox(services_, run_.place, facts(), run_.companions);
    if (started) report_.guest_directory = GuestDirectory::Usable;
    co_return started;
  }

  asio::awaitable<OperationResult<>> remove_objects(asio::awaitable<OperationResult<>> removal) {
    const std::uint64_t made_before = run_.objects_made;
    auto removed = co_await std::move(removal);
    if (removed) run_.companions.forget_containers();
    report_.is_outdated = run_.objects_made != made_before;
    co_return removed;
  }

  asio::awaitable<OperationResult<>> stopped(asio::awaitable<OperationResult<>> stop) {
    auto result = co_await std::move(stop);
    if (result) run_.companions.rest();
    co_return result;
  }

  // The result of an inspection, and the conclusion from it.
  struct Seen {
    SandboxInspection inspection;
    RestartStep step;
  };

  asio::awaitable<OperationResult<Seen>> observe() {
    AGBOX_CO_TRY(inspection, co_await inspect_sandbox(services_, facts()));
    if (report_.guest_directory == GuestDirectory::Unreachable && runs(inspection.seen.primary)) {
      const auto reconnected = co_await run_.place.reconnect(facts());
      report_.guest_directory = directory_after(reconnected);
      if (report_.guest_directory == GuestDirectory::Unreachable) {
        co_return std::unexpected<OperationFailure>(reconnected.error());
      }
    }
    inspection.seen.has_guest_directory = report_.guest_directory != GuestDirectory::Gone;
    inspection.seen.has_finished = inspection.seen.primary == PrimarySeen::Exited &&
                                   inspection.loss && inspection.loss->exit_code == 0 &&
                                   facts().spec.create_spec.command_size() > 0;
    const RestartStep step = restart_plan(run_.state, inspection.seen).step;
    co_return Seen{.inspection = std::move(inspection), .step = step};
  }

  asio::awaitable<OperationResult<>> inspect() {
    AGBOX_CO_TRY(seen, co_await observe());
    co_return co_await leave_to_sandbox(std::move(seen));
  }

  asio::awaitable<OperationResult<>> restart() {
    // A host that cannot isolate it for a while is not a failure of the sandbox.
    AGBOX_CO_TRY_VOID(co_await services_.isolation.at_last_in_place());
    AGBOX_CO_TRY(seen, co_await observe());
    if (seen.step == RestartStep::Fail) co_return co_await leave_to_sandbox(std::move(seen));
    // Finished or not: that it has to be restarted is decided, and what was seen since then may be
    // the end of an interrupted start, or of one that we stopped because it was not ours.
    auto started = co_await start();
    if (started || !is_definite(started.error()) || co_await is_cancelled()) co_return started;
    const auto undone = co_await undo_resume(services_, run_.place, facts());
    if (!undone) log_.warn("a failed start is not undone", {{"error", undone.error().message()}});
    // A port may become free again, for example when what remains of an engine has ended.
    if (started.error().code() == reason::kPortInUse.name) {
      co_return refuse(started.error().message());
    }
    co_return started;
  }

  asio::awaitable<OperationResult<>> pause() {
    AGBOX_CO_TRY(seen, co_await observe());
    const bool is_paused = seen.inspection.seen.primary == PrimarySeen::Paused;
    report_.is_paused_by_others = is_paused && !run_.may_be_paused;
    // Companions that are not paused with the primary do not run on without isolation.
    if (seen.step != RestartStep::Adopt || report_.is_paused_by_others) {
      co_await run_.companions.stop_containers();
    }
    if (seen.step != RestartStep::Adopt) co_return co_await leave_to_sandbox(std::move(seen));
    if (report_.is_paused_by_others) co_return OperationResult<>{};
    auto paused = co_await services_.engine.pause(facts());
    if (!paused && paused.error().is_definite()) co_await run_.companions.stop_containers();
    co_return paused;
  }

  // Leaves the decision to the sandbox. Stops a container that is unusable or was started by
  // another process.
  asio::awaitable<OperationResult<>> leave_to_sandbox(Seen seen) {
    const bool is_usable = seen.step == RestartStep::Stay || seen.step == RestartStep::Adopt;
    if (!is_usable && runs(seen.inspection.seen.primary)) {
      auto stopped = co_await stop_unusable(services_, facts());
      if (!stopped && !is_definite(stopped.error())) co_return stopped;
      if (!stopped) log_.warn("the container runs on", {{"error", stopped.error().message()}});
    }
    report_.inspection = std::move(seen.inspection);
    co_return OperationResult<>{};
  }

  OperationServices& services_;
  OperationRun run_;
  Logger log_;
  OperationReport report_;
};

}  // namespace

asio::awaitable<OperationReport> run_operation(OperationServices& services, OperationRun run,
                                               Logger log) {
  Run started(services, std::move(run), std::move(log));
  co_return co_await started.to_its_end();
}

}  // namespace agbox
