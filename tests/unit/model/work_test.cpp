// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/overloaded.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using enum Lifecycle;
using Attempt = work::Create::Attempt;

const Failure kWhy{.code = "CODE", .message = "why"};

// --- states and steps as text ---

std::string text(OperationKind kind) {
  constexpr std::array kNames{"Create", "StartOver", "UndoCreate", "Resume",  "UndoResume",
                              "Stop",   "Delete",    "CleanUp",    "Inspect", "Restart",
                              "Halt",   "Pause",     "Unpause"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string text(Lifecycle state) {
  constexpr std::array kNames{"Creating", "Resuming", "Ready",    "Stopping",
                              "Stopped",  "Failed",   "Deleting", "Deleted"};
  return kNames.at(static_cast<std::size_t>(state));
}

std::string text(const Work& work) {
  constexpr std::array kAttempts{"First", "Recovered", "Again"};
  const auto lost = [](unsigned attempts) {
    return attempts == 0 ? std::string() : "-" + std::to_string(attempts);
  };
  return std::visit(
      Overloaded{
          [](const work::Idle&) { return std::string("Idle"); },
          [&](const work::Create& w) {
            return "Create" + lost(w.lost_starts) + "." +
                   kAttempts.at(static_cast<std::size_t>(w.attempt));
          },
          [](const work::UndoCreate& w) { return "UndoCreate:" + w.failure.code; },
          [&](const work::Resume& w) { return "Resume" + lost(w.lost_starts); },
          [&](const work::UndoResume& w) {
            return "UndoResume" + lost(w.lost_starts) + ":" + w.failure.code;
          },
          [&](const work::Stop& w) { return "Stop" + lost(w.refusals); },
          [](const work::Delete&) { return std::string("Delete"); },
          [](const work::CleanUp&) { return std::string("CleanUp"); },
          [](const work::Halt& w) {
            return std::string("Halt") + (w.unreported ? ":" + w.unreported->code : "");
          },
          [](const work::Inspect& w) { return std::string(w.again ? "Inspect.again" : "Inspect"); },
          [](const work::AwaitRestart&) { return std::string("AwaitRestart"); },
          [](const work::Restart&) { return std::string("Restart"); },
          [](const work::Pause& w) {
            return std::string("Pause") + (w.may_be_done ? ".done?" : "") +
                   (w.inspects ? ".inspects" : "");
          },
          [](const work::Unpause& w) {
            return std::string(w.inspects ? "Unpause.inspects" : "Unpause");
          },
      },
      work);
}

std::string text(const WorkState& state) {
  std::string line = text(state.lifecycle.state) + " " + text(state.work);
  if (state.attempts != 1) line += " #" + std::to_string(state.attempts);
  if (const auto* running = std::get_if<activity::Running>(&state.activity)) {
    line += " running " + text(running->kind);
  }
  if (std::holds_alternative<activity::BackingOff>(state.activity)) line += " backing off";
  constexpr std::array kPaused{"", " begun", " paused"};
  if (!state.isolation.problem.empty()) line += " unisolated";
  line += kPaused.at(static_cast<std::size_t>(state.isolation.paused));
  constexpr std::array kReleased{"", " released", " unanswered"};
  line += kReleased.at(static_cast<std::size_t>(state.isolation.released));
  if (state.isolation.unanswered_since) line += " awaiting";
  if (!state.isolation.unverified.empty()) line += " unverified";
  return line;
}

std::string text(const LifecycleEvent& event) {
  constexpr std::array kNames{"Accepted",      "Preparing", "Ready",           "Failed",
                              "StopRequested", "Stopped",   "DeleteRequested", "Deleted"};
  std::string line = kNames.at(event.index());
  if (const auto* failed = std::get_if<event::Failed>(&event)) line += ":" + failed->failure.code;
  return line;
}

std::string text(const WorkStep& step) {
  constexpr std::array kExecs{"", " cancel-execs", " end-execs", " end-unsent", " end-for-restart"};
  constexpr std::array kThen{"", " then-live", " then-restarted", " then-deleted"};
  std::string line;
  if (step.record) {
    line += " record";
    for (const LifecycleEvent& event : step.record->events) line += " " + text(event);
    line += kExecs.at(static_cast<std::size_t>(step.record->execs));
    if (step.record->loss) line += "(" + step.record->loss->how.substr(0, 14) + ")";
    if (step.record->has_new_secret) line += " secret";
    if (step.record->has_objects) line += " objects";
    if (step.record->has_operation) line += " operation";
    if (step.record->has_isolation) line += " isolation";
    if (step.record->has_restarts) line += " restarts";
    line += kThen.at(static_cast<std::size_t>(step.record->then));
    line += ";";
  }
  if (step.uncounts_attempt) line += " uncount;";
  if (step.clears_restart) line += " clear restart;";
  if (step.restart_in) line += " restart in " + std::to_string(step.restart_in->count()) + "ms;";
  if (step.clears_verification) line += " clear verification;";
  if (step.verify_in) line += " verify in " + std::to_string(step.verify_in->count()) + "ms;";
  if (step.resets_backoff) line += " reset backoff;";
  if (step.backoff == WorkStep::Backoff::Begin) line += " back off;";
  if (step.backoff == WorkStep::Backoff::End) line += " end backoff;";
  if (step.cancels) line += " cancel;";
  if (step.start) line += " start " + text(*step.start) + ";";
  if (step.takes_guest) line += " take guest;";
  return line;
}

// --- what is put together below ---

WorkState state_of(Lifecycle lifecycle, Work work, Activity activity = {},
                   std::uint32_t attempts = 1) {
  const bool has_reason = lifecycle == Stopping || lifecycle == Deleting;
  return {.lifecycle = {.state = lifecycle, .reason = has_reason ? "because" : ""},
          .work = std::move(work),
          .attempts = attempts,
          .activity = activity};
}

WorkState running(Lifecycle lifecycle, const Work& work, std::uint32_t attempts = 1) {
  return state_of(lifecycle, work, activity::Running{*wanted_operation(work)}, attempts);
}

input::Ended ended(OperationEnd end) {
  return {.end = end, .message = end == OperationEnd::Done ? "" : "why"};
}

input::Ended saw(PrimarySeen primary) {
  const bool is_lost = primary != PrimarySeen::Running && primary != PrimarySeen::Paused;
  return {.inspection = SandboxInspection{
              .seen = {.primary = primary},
              .loss = is_lost ? std::optional(ContainerLoss{.how = "it exited"}) : std::nullopt}};
}

input::Ended saw_finished() {
  return {.inspection = SandboxInspection{
              .seen = {.primary = PrimarySeen::Exited, .has_finished = true},
              .loss = ContainerLoss{.how = "it exited with code 0", .exit_code = 0}}};
}

using Paused = IsolationState::Paused;

WorkState with(IsolationState isolation, WorkState state) {
  state.isolation = std::move(isolation);
  return state;
}

const IsolationState kReported{.problem = "open", .failures = 1};
const IsolationState kPausing{.problem = "open", .paused = Paused::Begun, .failures = 1};
const IsolationState kPaused{.problem = "open", .paused = Paused::Yes, .failures = 1};
using Released = IsolationState::Released;
const IsolationState kReleased{.problem = "open", .released = Released::Unpaused, .failures = 1};
const IsolationState kUnanswered{
    .problem = "open", .released = Released::Unanswered, .failures = 1};
const IsolationState kAwaiting{.unanswered_since = BootTime(-10s)};
const IsolationState kUnverified{
    .unanswered_since = BootTime(-30s),
    .unverified =
        "its guest has not answered for 30 s, so its isolation is verified from outside only"};

struct NamedState {
  std::string name;
  WorkState state;
};

// Each work of each lifecycle state, with the operation that it asks for running; pauses and
// unpauses also while they wait for their retry.
const std::vector<NamedState>& states() {
  static const std::vector<NamedState> all{
      {"create", running(Creating, work::Create{})},
      {"recovered create", state_of(Creating, work::Create{Attempt::Recovered}, {}, 1)},
      {"create again", running(Creating, work::Create{Attempt::Again}, 2)},
      {"create lost twice", running(Creating, work::Create{Attempt::Again, 2})},
      {"undo create", running(Creating, work::UndoCreate{kWhy})},
      {"resume", running(Resuming, work::Resume{})},
      {"resume lost twice", running(Resuming, work::Resume{2})},
      {"undo resume", running(Resuming, work::UndoResume{kWhy})},
      {"ready", state_of(Ready, work::Idle{})},
      {"inspect", running(Ready, work::Inspect{})},
      {"inspect again", running(Ready, work::Inspect{.again = true})},
      {"await restart", state_of(Ready, work::AwaitRestart{})},
      {"restart", running(Ready, work::Restart{})},
      {"unisolated", with(kReported, state_of(Ready, work::Idle{}))},
      {"pause", with(kPausing, running(Ready, work::Pause{}))},
      {"pause again", with(kPaused, running(Ready, work::Pause{.may_be_done = true}))},
      {"pause waiting",
       with(kPausing, state_of(Ready, work::Pause{.may_be_done = true}, activity::BackingOff{}))},
      {"pause inspects", with(kPausing, running(Ready, work::Pause{.inspects = true}))},
      {"paused", with(kPaused, state_of(Ready, work::Idle{}))},
      {"inspect paused", with(kPaused, running(Ready, work::Inspect{}))},
      {"unpause", with(kPaused, running(Ready, work::Unpause{}))},
      {"unpause waiting", with(kPaused, state_of(Ready, work::Unpause{}, activity::BackingOff{}))},
      {"unpause inspects", with(kPaused, running(Ready, work::Unpause{.inspects = true}))},
      {"released", with(kReleased, state_of(Ready, work::Idle{}))},
      {"unanswered", with(kUnanswered, state_of(Ready, work::Idle{}))},
      {"awaiting", with(kAwaiting, state_of(Ready, work::Idle{}))},
      {"unverified", with(kUnverified, state_of(Ready, work::Idle{}))},
      {"stop paused", with({.paused = Paused::Yes}, running(Stopping, work::Stop{}))},
      {"stop", running(Stopping, work::Stop{})},
      {"stop refused thrice", running(Stopping, work::Stop{3})},
      {"stopped", state_of(Stopped, work::Idle{})},
      {"inspect stopped", running(Stopped, work::Inspect{})},
      {"failed", state_of(Failed, work::Idle{})},
      {"inspect failed", running(Failed, work::Inspect{})},
      {"clean up", running(Failed, work::CleanUp{})},
      {"halt", running(Failed, work::Halt{})},
      {"halt first", running(Failed, work::Halt{kWhy})},
      {"delete", running(Deleting, work::Delete{})},
      {"deleted", state_of(Deleted, work::Idle{})},
  };
  return all;
}

struct NamedInput {
  std::string name;
  WorkInput input;
};

const std::vector<NamedInput>& inputs() {
  static const std::vector<NamedInput> all{
      {"Stop", input::Stop{"r"}},
      {"Resume", input::Resume{.has_containers = true}},
      {"Delete", input::Delete{"r"}},
      {"Progress", input::Progress{"pull"}},
      {"Done", ended(OperationEnd::Done)},
      {"Outdated", input::Ended{.is_outdated = true}},
      {"Refused", ended(OperationEnd::Refused)},
      {"RefusedForGood", input::Ended{.end = OperationEnd::Refused, .message = "m", .code = "OWN"}},
      {"Retry", ended(OperationEnd::Retry)},
      {"Lost", ended(OperationEnd::Lost)},
      {"Cancelled", ended(OperationEnd::Cancelled)},
      {"SawRunning", saw(PrimarySeen::Running)},
      {"SawPaused", saw(PrimarySeen::Paused)},
      {"SawExited", saw(PrimarySeen::Exited)},
      {"SawMissing", saw(PrimarySeen::Missing)},
      {"SawFinished", saw_finished()},
      {"PausedByOthers", input::Ended{.is_paused_by_others = true}},
      {"GuestConnected", input::GuestConnected{}},
      {"GuestLost", input::GuestLost{}},
      {"Recheck", input::RecheckContainer{}},
      {"EngineBack", input::EngineBack{}},
      {"BackoffOver", input::BackoffOver{}},
      {"RestartDue", input::RestartDue{}},
      {"IsolationFailed", input::IsolationFailed{"open"}},
      {"HoldsOutside", input::IsolationHolds{}},
      {"Holds", input::IsolationHolds{.from_inside = true}},
  };
  return all;
}

// Whether the sandbox's actor could pass this on: it refuses commands that decide() refuses, only
// what runs can end, only a removal can be outdated, and only an inspection sees something.
bool can_happen(const WorkState& state, const WorkInput& input) {
  const auto is_legal = [&](const LifecycleCommand& command) {
    return decide("s-1", state.lifecycle, command).has_value();
  };
  // What cleans up or halts has failed in a way that leaves no container to resume.
  const bool has_containers = !std::holds_alternative<work::CleanUp>(state.work) &&
                              !std::holds_alternative<work::Halt>(state.work);
  const auto* running = std::get_if<activity::Running>(&state.activity);
  return std::visit(Overloaded{
                        [&](const input::Stop&) { return is_legal(command::Stop{}); },
                        [&](const input::Resume& r) {
                          return has_containers && is_legal(command::Resume{r.has_containers});
                        },
                        [&](const input::Ended& e) {
                          if (running == nullptr) return false;
                          const bool inspects = running->kind == OperationKind::Inspect;
                          const bool removes = running->kind == OperationKind::UndoCreate ||
                                               running->kind == OperationKind::CleanUp ||
                                               running->kind == OperationKind::Delete;
                          const bool pauses = running->kind == OperationKind::Pause;
                          if (e.is_outdated) return removes;
                          if (!e.code.empty()) {  // of a start
                            return running->kind == OperationKind::Create ||
                                   running->kind == OperationKind::StartOver ||
                                   running->kind == OperationKind::Resume ||
                                   running->kind == OperationKind::Restart;
                          }
                          if (e.is_paused_by_others) {
                            const auto* pause = std::get_if<work::Pause>(&state.work);
                            return pauses && (pause == nullptr || !pause->may_be_done);
                          }
                          if (e.inspection) {
                            const bool fails = e.inspection->seen.primary == PrimarySeen::Missing;
                            const bool is_lost = e.inspection->loss.has_value();
                            return inspects || (pauses && is_lost) ||
                                   (running->kind == OperationKind::Restart && fails);
                          }
                          return e.end != OperationEnd::Done || !inspects;
                        },
                        [&](const input::BackoffOver&) {
                          return std::holds_alternative<activity::BackingOff>(state.activity);
                        },
                        [](const auto&) { return true; },
                    },
                    input);
}

// --- the table ---

struct WorkRow {
  const char* from;
  const char* input;
  const char* then;  // the state, then what is done
};

// An engine is reachable, no guest is connected, no exec runs. Whatever is not listed changes
// nothing.
// clang-format off
const WorkRow kRows[] = {
    {"create",            "Delete",         "Deleting Delete running Create | record DeleteRequested; cancel;"},
    {"create",            "Progress",       "Creating Create.First running Create | record Preparing;"},
    {"create",            "Done",           "Ready Inspect running Inspect awaiting | record Ready objects then-live; verify in 30000ms; reset backoff; start Inspect;"},
    {"create",            "Refused",        "Creating UndoCreate:SANDBOX_CREATE_FAILED running UndoCreate | start UndoCreate;"},
    {"create",            "RefusedForGood", "Creating UndoCreate:OWN running UndoCreate | start UndoCreate;"},
    {"create",            "Retry",          "Creating Create.First backing off | back off;"},
    {"create",            "Lost",           "Creating Create-1.Again backing off | record secret; back off;"},
    {"create",            "Cancelled",      "Creating Create.First backing off | back off;"},
    {"create",            "EngineBack",     "Creating Create.First running Create | reset backoff;"},

    {"recovered create",  "Delete",         "Deleting Delete running Delete | record DeleteRequested; start Delete;"},
    {"recovered create",  "Progress",       "Creating Create.Recovered | record Preparing;"},
    {"recovered create",  "EngineBack",     "Creating Create.Again #2 running StartOver | record Preparing secret; reset backoff; start StartOver;"},

    {"create again",      "Delete",         "Deleting Delete running StartOver | record DeleteRequested; cancel;"},
    {"create again",      "Progress",       "Creating Create.Again #2 running StartOver | record Preparing;"},
    {"create again",      "Done",           "Ready Inspect #2 running Inspect awaiting | record Ready objects then-live; verify in 30000ms; reset backoff; start Inspect;"},
    {"create again",      "Refused",        "Creating UndoCreate:SANDBOX_CREATE_FAILED #2 running UndoCreate | start UndoCreate;"},
    {"create again",      "RefusedForGood", "Creating UndoCreate:OWN #2 running UndoCreate | start UndoCreate;"},
    {"create again",      "Retry",          "Creating Create.Again #2 backing off | back off;"},
    {"create again",      "Lost",           "Creating Create-1.Again #2 backing off | record secret; back off;"},
    {"create again",      "Cancelled",      "Creating Create.Again #2 backing off | back off;"},
    {"create again",      "EngineBack",     "Creating Create.Again #2 running StartOver | reset backoff;"},

    {"create lost twice", "Delete",         "Deleting Delete running StartOver | record DeleteRequested; cancel;"},
    {"create lost twice", "Progress",       "Creating Create-2.Again running StartOver | record Preparing;"},
    {"create lost twice", "Done",           "Ready Inspect running Inspect awaiting | record Ready objects then-live; verify in 30000ms; reset backoff; start Inspect;"},
    {"create lost twice", "Refused",        "Creating UndoCreate:SANDBOX_CREATE_FAILED running UndoCreate | start UndoCreate;"},
    {"create lost twice", "RefusedForGood", "Creating UndoCreate:OWN running UndoCreate | start UndoCreate;"},
    {"create lost twice", "Retry",          "Creating Create-2.Again backing off | back off;"},
    {"create lost twice", "Lost",           "Creating UndoCreate:SANDBOX_CREATE_FAILED running UndoCreate | start UndoCreate;"},
    {"create lost twice", "Cancelled",      "Creating Create-2.Again backing off | back off;"},
    {"create lost twice", "EngineBack",     "Creating Create-2.Again running StartOver | reset backoff;"},

    {"undo create",       "Delete",         "Deleting Delete running UndoCreate | record DeleteRequested; cancel;"},
    {"undo create",       "Progress",       "Creating UndoCreate:CODE running UndoCreate | record Preparing;"},
    {"undo create",       "Done",           "Failed Idle | record Failed:CODE end-unsent objects; reset backoff;"},
    {"undo create",       "Outdated",       "Failed CleanUp running CleanUp | record Failed:CODE end-unsent objects; reset backoff; start CleanUp;"},
    {"undo create",       "Refused",        "Failed CleanUp running CleanUp | record Failed:CODE end-unsent objects; start CleanUp;"},
    {"undo create",       "Retry",          "Failed CleanUp running CleanUp | record Failed:CODE end-unsent objects; start CleanUp;"},
    {"undo create",       "Lost",           "Failed CleanUp running CleanUp | record Failed:CODE end-unsent objects; start CleanUp;"},
    {"undo create",       "Cancelled",      "Failed CleanUp running CleanUp | record Failed:CODE end-unsent objects; start CleanUp;"},
    {"undo create",       "EngineBack",     "Creating UndoCreate:CODE running UndoCreate | reset backoff;"},

    {"resume",            "Delete",         "Deleting Delete running Resume | record DeleteRequested; cancel;"},
    {"resume",            "Done",           "Ready Inspect running Inspect awaiting | record Ready objects then-live; verify in 30000ms; reset backoff; start Inspect;"},
    {"resume",            "Refused",        "Resuming UndoResume:SANDBOX_RESUME_FAILED running UndoResume | start UndoResume;"},
    {"resume",            "RefusedForGood", "Resuming UndoResume:OWN running UndoResume | start UndoResume;"},
    {"resume",            "Retry",          "Resuming Resume backing off | back off;"},
    {"resume",            "Lost",           "Resuming Resume-1 backing off | record secret; back off;"},
    {"resume",            "Cancelled",      "Resuming Resume backing off | back off;"},
    {"resume",            "EngineBack",     "Resuming Resume running Resume | reset backoff;"},

    {"resume lost twice", "Delete",         "Deleting Delete running Resume | record DeleteRequested; cancel;"},
    {"resume lost twice", "Done",           "Ready Inspect running Inspect awaiting | record Ready objects then-live; verify in 30000ms; reset backoff; start Inspect;"},
    {"resume lost twice", "Refused",        "Resuming UndoResume-2:SANDBOX_RESUME_FAILED running UndoResume | start UndoResume;"},
    {"resume lost twice", "RefusedForGood", "Resuming UndoResume-2:OWN running UndoResume | start UndoResume;"},
    {"resume lost twice", "Retry",          "Resuming Resume-2 backing off | back off;"},
    {"resume lost twice", "Lost",           "Resuming UndoResume-2:SANDBOX_RESUME_FAILED running UndoResume | start UndoResume;"},
    {"resume lost twice", "Cancelled",      "Resuming Resume-2 backing off | back off;"},
    {"resume lost twice", "EngineBack",     "Resuming Resume-2 running Resume | reset backoff;"},

    {"undo resume",       "Delete",         "Deleting Delete running UndoResume | record DeleteRequested; cancel;"},
    {"undo resume",       "Done",           "Failed Idle | record Failed:CODE end-unsent objects; reset backoff;"},
    {"undo resume",       "Refused",        "Failed Idle | record Failed:CODE end-unsent objects;"},
    {"undo resume",       "Retry",          "Resuming Resume backing off | back off;"},
    {"undo resume",       "Lost",           "Failed Idle | record Failed:CODE end-unsent objects;"},
    {"undo resume",       "Cancelled",      "Resuming Resume backing off | back off;"},
    {"undo resume",       "EngineBack",     "Resuming UndoResume:CODE running UndoResume | reset backoff;"},

    {"ready",             "Stop",           "Stopping Stop running Stop | record StopRequested cancel-execs; start Stop;"},
    {"ready",             "Delete",         "Deleting Delete running Delete | record DeleteRequested; start Delete;"},
    {"ready",             "GuestConnected", "Ready Idle | take guest;"},
    {"ready",             "GuestLost",      "Ready Inspect running Inspect awaiting | verify in 30000ms; start Inspect;"},
    {"ready",             "Recheck",        "Ready Inspect running Inspect | start Inspect;"},
    {"ready",             "EngineBack",     "Ready Inspect running Inspect | reset backoff; start Inspect;"},
    {"ready",              "IsolationFailed","Ready Pause running Pause unisolated begun | record isolation; verify in 500ms; start Pause;"},
    {"ready",              "HoldsOutside",  "Ready Idle awaiting | verify in 30000ms;"},

    {"inspect",           "Stop",           "Stopping Stop running Inspect | record StopRequested cancel-execs; cancel;"},
    {"inspect",           "Delete",         "Deleting Delete running Inspect | record DeleteRequested; cancel;"},
    {"inspect",           "Refused",        "Ready Inspect backing off | back off;"},
    {"inspect",           "Retry",          "Ready Inspect backing off | back off;"},
    {"inspect",           "Lost",           "Ready Inspect backing off | back off;"},
    {"inspect",           "Cancelled",      "Ready Inspect backing off | back off;"},
    {"inspect",           "SawRunning",     "Ready Idle | reset backoff;"},
    {"inspect",           "SawExited",      "Ready AwaitRestart | record Preparing end-for-restart(it exited) restarts; restart in 100ms; reset backoff;"},
    {"inspect",           "SawMissing",     "Failed Idle | record Failed:CONTAINER_NOT_RUNNING end-execs(it exited); reset backoff;"},
    {"inspect",           "SawFinished",    "Stopping Stop running Stop | record StopRequested end-execs(it exited with) restarts; reset backoff; start Stop;"},
    {"inspect",           "GuestConnected", "Ready Idle running Inspect | cancel; take guest;"},
    {"inspect",           "GuestLost",      "Ready Inspect.again running Inspect awaiting | verify in 30000ms;"},
    {"inspect",           "Recheck",        "Ready Inspect.again running Inspect |"},
    {"inspect",           "EngineBack",     "Ready Inspect.again running Inspect | reset backoff;"},
    {"inspect",            "SawPaused",      "Ready Idle | reset backoff;"},
    {"inspect",            "IsolationFailed","Ready Pause running Inspect unisolated begun | record isolation; verify in 500ms; cancel;"},
    {"inspect",            "HoldsOutside",  "Ready Inspect running Inspect awaiting | verify in 30000ms;"},

    {"inspect again",     "Stop",           "Stopping Stop running Inspect | record StopRequested cancel-execs; cancel;"},
    {"inspect again",     "Delete",         "Deleting Delete running Inspect | record DeleteRequested; cancel;"},
    {"inspect again",     "Refused",        "Ready Inspect.again backing off | back off;"},
    {"inspect again",     "Retry",          "Ready Inspect.again backing off | back off;"},
    {"inspect again",     "Lost",           "Ready Inspect.again backing off | back off;"},
    {"inspect again",     "Cancelled",      "Ready Inspect.again backing off | back off;"},
    {"inspect again",     "SawRunning",     "Ready Inspect running Inspect | reset backoff; start Inspect;"},
    {"inspect again",     "SawExited",      "Ready AwaitRestart | record Preparing end-for-restart(it exited) restarts; restart in 100ms; reset backoff;"},
    {"inspect again",     "SawMissing",     "Failed Idle | record Failed:CONTAINER_NOT_RUNNING end-execs(it exited); reset backoff;"},
    {"inspect again",     "SawFinished",    "Stopping Stop running Stop | record StopRequested end-execs(it exited with) restarts; reset backoff; start Stop;"},
    {"inspect again",     "GuestConnected", "Ready Idle running Inspect | cancel; take guest;"},
    {"inspect again",     "EngineBack",     "Ready Inspect.again running Inspect | reset backoff;"},
    {"inspect again",      "SawPaused",      "Ready Inspect running Inspect | reset backoff; start Inspect;"},
    {"inspect again",      "IsolationFailed","Ready Pause running Inspect unisolated begun | record isolation; verify in 500ms; cancel;"},
    {"inspect again",      "GuestLost",     "Ready Inspect.again running Inspect awaiting | verify in 30000ms;"},
    {"inspect again",      "HoldsOutside",  "Ready Inspect.again running Inspect awaiting | verify in 30000ms;"},

    {"await restart",     "Stop",           "Stopping Stop running Stop | record StopRequested cancel-execs restarts; clear restart; start Stop;"},
    {"await restart",     "Delete",         "Deleting Delete running Delete | record DeleteRequested restarts; clear restart; start Delete;"},
    {"await restart",     "EngineBack",     "Ready Restart running Restart | clear restart; reset backoff; start Restart;"},
    {"await restart",     "RestartDue",     "Ready Restart running Restart | clear restart; start Restart;"},

    {"restart",           "Stop",           "Stopping Stop running Restart | record StopRequested cancel-execs restarts; cancel;"},
    {"restart",           "Delete",         "Deleting Delete running Restart | record DeleteRequested restarts; cancel;"},
    {"restart",           "Done",           "Ready Inspect running Inspect awaiting | record Ready objects restarts then-restarted; verify in 30000ms; reset backoff; start Inspect;"},
    {"restart",           "Refused",        "Ready AwaitRestart | restart in 100ms;"},
    {"restart",           "RefusedForGood", "Failed Idle | record Failed:OWN end-execs(it was not sta) restarts;"},
    {"restart",           "Retry",          "Ready Restart backing off | back off;"},
    {"restart",           "Lost",           "Ready AwaitRestart | restart in 100ms;"},
    {"restart",           "Cancelled",      "Ready Restart backing off | back off;"},
    {"restart",           "SawMissing",     "Failed Idle | record Failed:CONTAINER_NOT_RUNNING end-execs(it exited) restarts; reset backoff;"},
    {"restart",           "EngineBack",     "Ready Restart running Restart | reset backoff;"},

    {"unisolated",         "Stop",           "Stopping Stop running Stop | record StopRequested cancel-execs isolation; clear verification; start Stop;"},
    {"unisolated",         "Delete",         "Deleting Delete running Delete | record DeleteRequested isolation; clear verification; start Delete;"},
    {"unisolated",         "GuestConnected", "Ready Idle unisolated | take guest;"},
    {"unisolated",         "GuestLost",      "Ready Inspect running Inspect unisolated | start Inspect;"},
    {"unisolated",         "Recheck",        "Ready Inspect running Inspect unisolated | start Inspect;"},
    {"unisolated",         "EngineBack",     "Ready Inspect running Inspect unisolated | reset backoff; start Inspect;"},
    {"unisolated",         "IsolationFailed","Ready Pause running Pause unisolated begun | record isolation; verify in 1000ms; start Pause;"},
    {"unisolated",         "HoldsOutside",   "Ready Idle unisolated | verify in 1000ms;"},
    {"unisolated",         "Holds",          "Ready Idle | record isolation; clear verification;"},

    {"pause",              "Stop",           "Stopping Stop running Pause begun | record StopRequested cancel-execs isolation; clear verification; cancel;"},
    {"pause",              "Delete",         "Deleting Delete running Pause begun | record DeleteRequested isolation; clear verification; cancel;"},
    {"pause",              "Done",           "Ready Inspect running Inspect unisolated paused | record isolation; reset backoff; start Inspect;"},
    {"pause",              "Refused",        "Ready Inspect running Inspect unisolated | record isolation; start Inspect;"},
    {"pause",              "Retry",          "Ready Pause.done? backing off unisolated begun | back off;"},
    {"pause",              "Lost",           "Ready Inspect running Inspect unisolated | record isolation; start Inspect;"},
    {"pause",              "Cancelled",      "Ready Pause.done? backing off unisolated begun | back off;"},
    {"pause",              "SawExited",      "Ready AwaitRestart | record Preparing end-for-restart(it exited) isolation restarts; restart in 100ms; clear verification; reset backoff;"},
    {"pause",              "SawMissing",     "Failed Idle | record Failed:CONTAINER_NOT_RUNNING end-execs(it exited) isolation; clear verification; reset backoff;"},
    {"pause",              "SawFinished",    "Stopping Stop running Stop begun | record StopRequested end-execs(it exited with) isolation restarts; clear verification; reset backoff; start Stop;"},
    {"pause",              "PausedByOthers", "Ready Inspect running Inspect unisolated | record isolation; reset backoff; start Inspect;"},
    {"pause",              "GuestConnected", "Ready Pause running Pause unisolated begun | take guest;"},
    {"pause",              "GuestLost",      "Ready Pause.inspects running Pause unisolated begun |"},
    {"pause",              "Recheck",        "Ready Pause.inspects running Pause unisolated begun |"},
    {"pause",              "EngineBack",     "Ready Pause.inspects running Pause unisolated begun | reset backoff;"},
    {"pause",              "IsolationFailed","Ready Pause running Pause unisolated begun | verify in 1000ms;"},
    {"pause",              "HoldsOutside",   "Ready Unpause running Pause unisolated begun | cancel;"},
    {"pause",              "Holds",          "Ready Unpause running Pause unisolated begun | cancel;"},

    {"pause again",        "Stop",           "Stopping Stop running Pause paused | record StopRequested cancel-execs isolation; clear verification; cancel;"},
    {"pause again",        "Delete",         "Deleting Delete running Pause paused | record DeleteRequested isolation; clear verification; cancel;"},
    {"pause again",        "Done",           "Ready Inspect running Inspect unisolated paused | reset backoff; start Inspect;"},
    {"pause again",        "Refused",        "Ready Inspect running Inspect unisolated | record isolation; start Inspect;"},
    {"pause again",        "Retry",          "Ready Pause.done? backing off unisolated paused | back off;"},
    {"pause again",        "Lost",           "Ready Inspect running Inspect unisolated | record isolation; start Inspect;"},
    {"pause again",        "Cancelled",      "Ready Pause.done? backing off unisolated paused | back off;"},
    {"pause again",        "SawExited",      "Ready AwaitRestart | record Preparing end-for-restart(it exited) isolation restarts; restart in 100ms; clear verification; reset backoff;"},
    {"pause again",        "SawMissing",     "Failed Idle | record Failed:CONTAINER_NOT_RUNNING end-execs(it exited) isolation; clear verification; reset backoff;"},
    {"pause again",        "SawFinished",    "Stopping Stop running Stop paused | record StopRequested end-execs(it exited with) isolation restarts; clear verification; reset backoff; start Stop;"},
    {"pause again",        "GuestConnected", "Ready Pause.done? running Pause unisolated paused | take guest;"},
    {"pause again",        "GuestLost",      "Ready Pause.done?.inspects running Pause unisolated paused |"},
    {"pause again",        "Recheck",        "Ready Pause.done?.inspects running Pause unisolated paused |"},
    {"pause again",        "EngineBack",     "Ready Pause.done?.inspects running Pause unisolated paused | reset backoff;"},
    {"pause again",        "IsolationFailed","Ready Pause.done? running Pause unisolated paused | verify in 1000ms;"},
    {"pause again",        "HoldsOutside",   "Ready Unpause running Pause unisolated paused | cancel;"},
    {"pause again",        "Holds",          "Ready Unpause running Pause unisolated paused | cancel;"},

    {"pause waiting",      "Stop",           "Stopping Stop backing off begun | record StopRequested cancel-execs isolation; clear verification; end backoff;"},
    {"pause waiting",      "Delete",         "Deleting Delete backing off begun | record DeleteRequested isolation; clear verification; end backoff;"},
    {"pause waiting",      "GuestConnected", "Ready Pause.done? backing off unisolated begun | end backoff; take guest;"},
    {"pause waiting",      "GuestLost",      "Ready Pause.done?.inspects backing off unisolated begun |"},
    {"pause waiting",      "Recheck",        "Ready Pause.done?.inspects backing off unisolated begun |"},
    {"pause waiting",      "EngineBack",     "Ready Pause.done?.inspects backing off unisolated begun | reset backoff; end backoff;"},
    {"pause waiting",      "BackoffOver",    "Ready Pause.done? running Pause unisolated begun | start Pause;"},
    {"pause waiting",      "IsolationFailed","Ready Pause.done? backing off unisolated begun | verify in 1000ms; end backoff;"},
    {"pause waiting",      "HoldsOutside",   "Ready Unpause backing off unisolated begun | end backoff;"},
    {"pause waiting",      "Holds",          "Ready Unpause backing off unisolated begun | end backoff;"},

    {"pause inspects",     "Stop",           "Stopping Stop running Pause begun | record StopRequested cancel-execs isolation; clear verification; cancel;"},
    {"pause inspects",     "Delete",         "Deleting Delete running Pause begun | record DeleteRequested isolation; clear verification; cancel;"},
    {"pause inspects",     "Done",           "Ready Inspect running Inspect unisolated paused | record isolation; reset backoff; start Inspect;"},
    {"pause inspects",     "Refused",        "Ready Inspect running Inspect unisolated | record isolation; start Inspect;"},
    {"pause inspects",     "Retry",          "Ready Pause.done?.inspects backing off unisolated begun | back off;"},
    {"pause inspects",     "Lost",           "Ready Inspect running Inspect unisolated | record isolation; start Inspect;"},
    {"pause inspects",     "Cancelled",      "Ready Pause.done?.inspects backing off unisolated begun | back off;"},
    {"pause inspects",     "SawExited",      "Ready AwaitRestart | record Preparing end-for-restart(it exited) isolation restarts; restart in 100ms; clear verification; reset backoff;"},
    {"pause inspects",     "SawMissing",     "Failed Idle | record Failed:CONTAINER_NOT_RUNNING end-execs(it exited) isolation; clear verification; reset backoff;"},
    {"pause inspects",     "SawFinished",    "Stopping Stop running Stop begun | record StopRequested end-execs(it exited with) isolation restarts; clear verification; reset backoff; start Stop;"},
    {"pause inspects",     "PausedByOthers", "Ready Inspect running Inspect unisolated | record isolation; reset backoff; start Inspect;"},
    {"pause inspects",     "GuestConnected", "Ready Pause.inspects running Pause unisolated begun | take guest;"},
    {"pause inspects",     "EngineBack",     "Ready Pause.inspects running Pause unisolated begun | reset backoff;"},
    {"pause inspects",     "IsolationFailed","Ready Pause.inspects running Pause unisolated begun | verify in 1000ms;"},
    {"pause inspects",     "HoldsOutside",   "Ready Unpause.inspects running Pause unisolated begun | cancel;"},
    {"pause inspects",     "Holds",          "Ready Unpause.inspects running Pause unisolated begun | cancel;"},

    {"paused",             "Stop",           "Stopping Stop running Stop paused | record StopRequested cancel-execs isolation; clear verification; start Stop;"},
    {"paused",             "Delete",         "Deleting Delete running Delete paused | record DeleteRequested isolation; clear verification; start Delete;"},
    {"paused",             "GuestConnected", "Ready Idle unisolated paused | take guest;"},
    {"paused",             "GuestLost",      "Ready Inspect running Inspect unisolated paused | start Inspect;"},
    {"paused",             "Recheck",        "Ready Inspect running Inspect unisolated paused | start Inspect;"},
    {"paused",             "EngineBack",     "Ready Inspect running Inspect unisolated paused | reset backoff; start Inspect;"},
    {"paused",             "IsolationFailed","Ready Pause.done? running Pause unisolated paused | verify in 1000ms; start Pause;"},
    {"paused",             "HoldsOutside",   "Ready Unpause running Unpause unisolated paused | start Unpause;"},
    {"paused",             "Holds",          "Ready Unpause running Unpause unisolated paused | start Unpause;"},

    {"inspect paused",     "Stop",           "Stopping Stop running Inspect paused | record StopRequested cancel-execs isolation; clear verification; cancel;"},
    {"inspect paused",     "Delete",         "Deleting Delete running Inspect paused | record DeleteRequested isolation; clear verification; cancel;"},
    {"inspect paused",     "Refused",        "Ready Inspect backing off unisolated paused | back off;"},
    {"inspect paused",     "Retry",          "Ready Inspect backing off unisolated paused | back off;"},
    {"inspect paused",     "Lost",           "Ready Inspect backing off unisolated paused | back off;"},
    {"inspect paused",     "Cancelled",      "Ready Inspect backing off unisolated paused | back off;"},
    {"inspect paused",     "SawRunning",     "Ready Pause.done? running Pause unisolated paused | reset backoff; start Pause;"},
    {"inspect paused",     "SawPaused",      "Ready Idle unisolated paused | reset backoff;"},
    {"inspect paused",     "SawExited",      "Ready AwaitRestart | record Preparing end-for-restart(it exited) isolation restarts; restart in 100ms; clear verification; reset backoff;"},
    {"inspect paused",     "SawMissing",     "Failed Idle | record Failed:CONTAINER_NOT_RUNNING end-execs(it exited) isolation; clear verification; reset backoff;"},
    {"inspect paused",     "SawFinished",    "Stopping Stop running Stop paused | record StopRequested end-execs(it exited with) isolation restarts; clear verification; reset backoff; start Stop;"},
    {"inspect paused",     "GuestConnected", "Ready Idle running Inspect unisolated paused | cancel; take guest;"},
    {"inspect paused",     "GuestLost",      "Ready Inspect.again running Inspect unisolated paused |"},
    {"inspect paused",     "Recheck",        "Ready Inspect.again running Inspect unisolated paused |"},
    {"inspect paused",     "EngineBack",     "Ready Inspect.again running Inspect unisolated paused | reset backoff;"},
    {"inspect paused",     "IsolationFailed","Ready Pause.done? running Inspect unisolated paused | verify in 1000ms; cancel;"},
    {"inspect paused",     "HoldsOutside",   "Ready Unpause.inspects running Inspect unisolated paused | cancel;"},
    {"inspect paused",     "Holds",          "Ready Unpause.inspects running Inspect unisolated paused | cancel;"},

    {"unpause",            "Stop",           "Stopping Stop running Unpause paused | record StopRequested cancel-execs isolation; clear verification; cancel;"},
    {"unpause",            "Delete",         "Deleting Delete running Unpause paused | record DeleteRequested isolation; clear verification; cancel;"},
    {"unpause",            "Done",           "Ready Inspect running Inspect unisolated released | record isolation; verify in 0ms; reset backoff; start Inspect;"},
    {"unpause",            "Refused",        "Ready Unpause backing off unisolated paused | back off;"},
    {"unpause",            "Retry",          "Ready Unpause backing off unisolated paused | back off;"},
    {"unpause",            "Lost",           "Ready Unpause backing off unisolated paused | back off;"},
    {"unpause",            "Cancelled",      "Ready Unpause backing off unisolated paused | back off;"},
    {"unpause",            "GuestConnected", "Ready Unpause running Unpause unisolated paused | take guest;"},
    {"unpause",            "GuestLost",      "Ready Unpause.inspects running Unpause unisolated paused |"},
    {"unpause",            "Recheck",        "Ready Unpause.inspects running Unpause unisolated paused |"},
    {"unpause",            "EngineBack",     "Ready Unpause.inspects running Unpause unisolated paused | reset backoff;"},
    {"unpause",            "IsolationFailed","Ready Pause.done? running Unpause unisolated paused | verify in 1000ms; cancel;"},

    {"unpause waiting",    "Stop",           "Stopping Stop backing off paused | record StopRequested cancel-execs isolation; clear verification; end backoff;"},
    {"unpause waiting",    "Delete",         "Deleting Delete backing off paused | record DeleteRequested isolation; clear verification; end backoff;"},
    {"unpause waiting",    "GuestConnected", "Ready Unpause backing off unisolated paused | end backoff; take guest;"},
    {"unpause waiting",    "GuestLost",      "Ready Unpause.inspects backing off unisolated paused |"},
    {"unpause waiting",    "Recheck",        "Ready Unpause.inspects backing off unisolated paused |"},
    {"unpause waiting",    "EngineBack",     "Ready Unpause.inspects backing off unisolated paused | reset backoff; end backoff;"},
    {"unpause waiting",    "BackoffOver",    "Ready Unpause running Unpause unisolated paused | start Unpause;"},
    {"unpause waiting",    "IsolationFailed","Ready Pause.done? backing off unisolated paused | verify in 1000ms; end backoff;"},
    {"unpause waiting",    "HoldsOutside",   "Ready Unpause backing off unisolated paused | end backoff;"},
    {"unpause waiting",    "Holds",          "Ready Unpause backing off unisolated paused | end backoff;"},

    {"unpause inspects",   "Stop",           "Stopping Stop running Unpause paused | record StopRequested cancel-execs isolation; clear verification; cancel;"},
    {"unpause inspects",   "Delete",         "Deleting Delete running Unpause paused | record DeleteRequested isolation; clear verification; cancel;"},
    {"unpause inspects",   "Done",           "Ready Inspect running Inspect unisolated released | record isolation; verify in 0ms; reset backoff; start Inspect;"},
    {"unpause inspects",   "Refused",        "Ready Unpause.inspects backing off unisolated paused | back off;"},
    {"unpause inspects",   "Retry",          "Ready Unpause.inspects backing off unisolated paused | back off;"},
    {"unpause inspects",   "Lost",           "Ready Unpause.inspects backing off unisolated paused | back off;"},
    {"unpause inspects",   "Cancelled",      "Ready Unpause.inspects backing off unisolated paused | back off;"},
    {"unpause inspects",   "GuestConnected", "Ready Unpause.inspects running Unpause unisolated paused | take guest;"},
    {"unpause inspects",   "EngineBack",     "Ready Unpause.inspects running Unpause unisolated paused | reset backoff;"},
    {"unpause inspects",   "IsolationFailed","Ready Pause.done? running Unpause unisolated paused | verify in 1000ms; cancel;"},

    {"released",           "Stop",           "Stopping Stop running Stop | record StopRequested cancel-execs isolation; clear verification; start Stop;"},
    {"released",           "Delete",         "Deleting Delete running Delete | record DeleteRequested isolation; clear verification; start Delete;"},
    {"released",           "GuestConnected", "Ready Idle unisolated released | take guest;"},
    {"released",           "GuestLost",      "Ready Inspect running Inspect unisolated released | start Inspect;"},
    {"released",           "Recheck",        "Ready Inspect running Inspect unisolated released | start Inspect;"},
    {"released",           "EngineBack",     "Ready Inspect running Inspect unisolated released | reset backoff; start Inspect;"},
    {"released",           "IsolationFailed","Ready Pause running Pause unisolated begun | record isolation; verify in 1000ms; start Pause;"},
    {"released",           "HoldsOutside",   "Ready Idle unisolated unanswered | verify in 1000ms;"},
    {"released",           "Holds",          "Ready Idle | record isolation; clear verification;"},

    {"unanswered",         "Stop",           "Stopping Stop running Stop | record StopRequested cancel-execs isolation; clear verification; start Stop;"},
    {"unanswered",         "Delete",         "Deleting Delete running Delete | record DeleteRequested isolation; clear verification; start Delete;"},
    {"unanswered",         "GuestConnected", "Ready Idle unisolated unanswered | take guest;"},
    {"unanswered",         "GuestLost",      "Ready Inspect running Inspect unisolated unanswered | start Inspect;"},
    {"unanswered",         "Recheck",        "Ready Inspect running Inspect unisolated unanswered | start Inspect;"},
    {"unanswered",         "EngineBack",     "Ready Inspect running Inspect unisolated unanswered | reset backoff; start Inspect;"},
    {"unanswered",         "IsolationFailed","Ready Pause running Pause unisolated begun | record isolation; verify in 1000ms; start Pause;"},
    {"unanswered",         "HoldsOutside",   "Ready Pause running Pause unisolated begun | record isolation; verify in 1000ms; start Pause;"},
    {"unanswered",         "Holds",          "Ready Idle | record isolation; clear verification;"},

    {"awaiting",            "Stop",          "Stopping Stop running Stop | record StopRequested cancel-execs; clear verification; start Stop;"},
    {"awaiting",            "Delete",        "Deleting Delete running Delete | record DeleteRequested; clear verification; start Delete;"},
    {"awaiting",            "GuestConnected","Ready Idle awaiting | verify in 0ms; take guest;"},
    {"awaiting",            "GuestLost",     "Ready Inspect running Inspect awaiting | verify in 20000ms; start Inspect;"},
    {"awaiting",            "Recheck",       "Ready Inspect running Inspect awaiting | start Inspect;"},
    {"awaiting",            "EngineBack",    "Ready Inspect running Inspect awaiting | reset backoff; start Inspect;"},
    {"awaiting",            "IsolationFailed","Ready Pause running Pause unisolated begun | record isolation; verify in 500ms; start Pause;"},
    {"awaiting",            "HoldsOutside",  "Ready Idle awaiting | verify in 20000ms;"},
    {"awaiting",            "Holds",         "Ready Idle | clear verification;"},

    {"unverified",          "Stop",          "Stopping Stop running Stop | record StopRequested cancel-execs isolation; clear verification; start Stop;"},
    {"unverified",          "Delete",        "Deleting Delete running Delete | record DeleteRequested isolation; clear verification; start Delete;"},
    {"unverified",          "GuestConnected","Ready Idle awaiting unverified | verify in 0ms; take guest;"},
    {"unverified",          "GuestLost",     "Ready Inspect running Inspect awaiting unverified | verify in 30000ms; start Inspect;"},
    {"unverified",          "Recheck",       "Ready Inspect running Inspect awaiting unverified | start Inspect;"},
    {"unverified",          "EngineBack",    "Ready Inspect running Inspect awaiting unverified | reset backoff; start Inspect;"},
    {"unverified",          "IsolationFailed","Ready Pause running Pause unisolated begun | record isolation; verify in 500ms; start Pause;"},
    {"unverified",          "HoldsOutside",  "Ready Idle awaiting unverified | verify in 30000ms;"},
    {"unverified",          "Holds",         "Ready Idle | record isolation; clear verification;"},

    {"stop paused",        "Delete",         "Deleting Delete running Stop paused | record DeleteRequested; cancel;"},
    {"stop paused",        "Done",           "Stopped Idle | record Stopped end-execs isolation; reset backoff;"},
    {"stop paused",        "Refused",        "Stopping Stop-1 backing off paused | back off;"},
    {"stop paused",        "Retry",          "Stopping Stop backing off paused | back off;"},
    {"stop paused",        "Lost",           "Stopping Stop-1 backing off paused | back off;"},
    {"stop paused",        "Cancelled",      "Stopping Stop backing off paused | back off;"},
    {"stop paused",        "GuestConnected", "Stopping Stop running Stop paused | take guest;"},
    {"stop paused",        "EngineBack",     "Stopping Stop running Stop paused | reset backoff;"},

    {"stop",              "Delete",         "Deleting Delete running Stop | record DeleteRequested; cancel;"},
    {"stop",              "Done",           "Stopped Idle | record Stopped end-execs; reset backoff;"},
    {"stop",              "Refused",        "Stopping Stop-1 backing off | back off;"},
    {"stop",              "Retry",          "Stopping Stop backing off | back off;"},
    {"stop",              "Lost",           "Stopping Stop-1 backing off | back off;"},
    {"stop",              "Cancelled",      "Stopping Stop backing off | back off;"},
    {"stop",              "GuestConnected", "Stopping Stop running Stop | take guest;"},
    {"stop",              "EngineBack",     "Stopping Stop running Stop | reset backoff;"},

    {"stop refused thrice", "Delete",       "Deleting Delete running Stop | record DeleteRequested; cancel;"},
    {"stop refused thrice", "Done",         "Stopped Idle | record Stopped end-execs; reset backoff;"},
    {"stop refused thrice", "Refused",      "Failed Idle | record Failed:SANDBOX_STOP_FAILED end-unsent objects;"},
    {"stop refused thrice", "Retry",        "Stopping Stop-3 backing off | back off;"},
    {"stop refused thrice", "Lost",         "Failed Idle | record Failed:SANDBOX_STOP_FAILED end-unsent objects;"},
    {"stop refused thrice", "Cancelled",    "Stopping Stop-3 backing off | back off;"},
    {"stop refused thrice", "GuestConnected", "Stopping Stop-3 running Stop | take guest;"},
    {"stop refused thrice", "EngineBack",   "Stopping Stop-3 running Stop | reset backoff;"},

    {"stopped",           "Resume",         "Resuming Resume running Resume | record Accepted secret; start Resume;"},
    {"stopped",           "Delete",         "Deleting Delete running Delete | record DeleteRequested; start Delete;"},
    {"stopped",           "EngineBack",     "Stopped Inspect running Inspect | reset backoff; start Inspect;"},

    {"inspect stopped",   "Resume",         "Resuming Resume running Inspect | record Accepted secret; cancel;"},
    {"inspect stopped",   "Delete",         "Deleting Delete running Inspect | record DeleteRequested; cancel;"},
    {"inspect stopped",   "Refused",        "Stopped Inspect backing off | back off;"},
    {"inspect stopped",   "Retry",          "Stopped Inspect backing off | back off;"},
    {"inspect stopped",   "Lost",           "Stopped Inspect backing off | back off;"},
    {"inspect stopped",   "Cancelled",      "Stopped Inspect backing off | back off;"},
    {"inspect stopped",   "SawRunning",     "Stopped Idle | reset backoff;"},
    {"inspect stopped",   "SawExited",      "Stopped Idle | reset backoff;"},
    {"inspect stopped",   "SawMissing",     "Failed Idle | record Failed:CONTAINER_NOT_RUNNING end-execs(it exited); reset backoff;"},
    {"inspect stopped",   "SawFinished",    "Stopped Idle | reset backoff;"},
    {"inspect stopped",   "EngineBack",     "Stopped Inspect.again running Inspect | reset backoff;"},
    {"inspect stopped",    "SawPaused",      "Stopped Idle | reset backoff;"},

    {"failed",            "Resume",         "Resuming Resume running Resume | record Accepted secret; start Resume;"},
    {"failed",            "Delete",         "Deleting Delete running Delete | record DeleteRequested; start Delete;"},
    {"failed",            "EngineBack",     "Failed Idle | reset backoff;"},

    {"inspect failed",    "Resume",         "Resuming Resume running Inspect | record Accepted secret; cancel;"},
    {"inspect failed",    "Delete",         "Deleting Delete running Inspect | record DeleteRequested; cancel;"},
    {"inspect failed",    "Refused",        "Failed Inspect backing off | back off;"},
    {"inspect failed",    "Retry",          "Failed Inspect backing off | back off;"},
    {"inspect failed",    "Lost",           "Failed Inspect backing off | back off;"},
    {"inspect failed",    "Cancelled",      "Failed Inspect backing off | back off;"},
    {"inspect failed",    "SawRunning",     "Failed Idle | reset backoff;"},
    {"inspect failed",    "SawExited",      "Failed Idle | record end-execs(it exited); reset backoff;"},
    {"inspect failed",    "SawMissing",     "Failed Idle | record end-execs(it exited); reset backoff;"},
    {"inspect failed",    "SawFinished",    "Failed Idle | record end-execs(it exited with); reset backoff;"},
    {"inspect failed",    "EngineBack",     "Failed Idle running Inspect | reset backoff; cancel;"},
    {"inspect failed",     "SawPaused",      "Failed Idle | reset backoff;"},

    {"clean up",          "Delete",         "Deleting Delete running CleanUp | record DeleteRequested; cancel;"},
    {"clean up",          "Done",           "Failed Idle | record objects operation; reset backoff;"},
    {"clean up",          "Outdated",       "Failed CleanUp running CleanUp | start CleanUp;"},
    {"clean up",          "Refused",        "Failed CleanUp backing off | back off;"},
    {"clean up",          "Retry",          "Failed CleanUp backing off | back off;"},
    {"clean up",          "Lost",           "Failed CleanUp backing off | back off;"},
    {"clean up",          "Cancelled",      "Failed CleanUp backing off | back off;"},
    {"clean up",          "EngineBack",     "Failed CleanUp running CleanUp | reset backoff;"},

    {"halt",              "Delete",         "Deleting Delete running Halt | record DeleteRequested; cancel;"},
    {"halt",              "Done",           "Failed Idle | record end-execs(it was stopped); reset backoff;"},
    {"halt",              "Refused",        "Failed Halt backing off | back off;"},
    {"halt",              "Retry",          "Failed Halt backing off | back off;"},
    {"halt",              "Lost",           "Failed Halt backing off | back off;"},
    {"halt",              "Cancelled",      "Failed Halt backing off | back off;"},
    {"halt",              "EngineBack",     "Failed Halt running Halt | reset backoff;"},

    {"halt first",        "Delete",         "Deleting Delete running Halt | record DeleteRequested; cancel;"},
    {"halt first",        "Done",           "Failed Idle | record Failed:CODE end-execs(it was stopped); reset backoff;"},
    {"halt first",        "Refused",        "Failed Halt:CODE backing off | back off;"},
    {"halt first",        "Retry",          "Failed Halt:CODE backing off | back off;"},
    {"halt first",        "Lost",           "Failed Halt:CODE backing off | back off;"},
    {"halt first",        "Cancelled",      "Failed Halt:CODE backing off | back off;"},
    {"halt first",        "EngineBack",     "Failed Halt:CODE running Halt | reset backoff;"},

    {"delete",            "Done",           "Deleted Idle | record Deleted end-execs objects then-deleted; reset backoff;"},
    {"delete",            "Outdated",       "Deleting Delete running Delete | start Delete;"},
    {"delete",            "Refused",        "Failed Idle | record Failed:SANDBOX_DELETE_FAILED end-unsent objects;"},
    {"delete",            "Retry",          "Deleting Delete backing off | back off;"},
    {"delete",            "Lost",           "Failed Idle | record Failed:SANDBOX_DELETE_FAILED end-unsent objects;"},
    {"delete",            "Cancelled",      "Deleting Delete backing off | back off;"},
    {"delete",            "EngineBack",     "Deleting Delete running Delete | reset backoff;"},

    {"deleted",           "EngineBack",     "Deleted Idle | reset backoff;"},
};
// clang-format on

constexpr Surroundings kUsual{.has_engine = true, .pauses_unisolated = true};
constexpr Surroundings kReport{.has_engine = true};

std::string outcome(const WorkState& from, const WorkInput& input, const Surroundings& now) {
  const auto [state, step] = advance(from, input, now);
  return text(state) + " |" + text(step);
}

TEST(WorkTest, EveryInputInEveryStateDoesWhatTheTableSays) {
  std::map<std::pair<std::string, std::string>, std::string> rows;
  for (const WorkRow& row : kRows) rows[{row.from, row.input}] = row.then;
  EXPECT_EQ(rows.size(), std::size(kRows)) << "a row is there twice";
  for (const auto& [from, state] : states()) {
    for (const auto& [name, input] : inputs()) {
      if (!can_happen(state, input)) continue;
      const auto row = rows.find({from, name});
      const std::string then = row == rows.end() ? text(state) + " |" : row->second;
      EXPECT_EQ(outcome(state, input, kUsual), then) << "{\"" << from << "\", \"" << name << "\"}";
      if (row != rows.end()) rows.erase(row);
    }
  }
  EXPECT_THAT(rows, testing::IsEmpty()) << "rows that cannot be";
}

struct SpecialRow {
  const char* from;
  const char* input;
  Surroundings now;
  const char* then;
};

constexpr Surroundings kGuest{
    .has_engine = true, .is_guest_connected = true, .pauses_unisolated = true};
constexpr Surroundings kExecs{.has_engine = true, .has_execs = true};
constexpr Surroundings kGuestAndExecs{
    .has_engine = true, .is_guest_connected = true, .has_execs = true};
constexpr Surroundings kShutdown{.has_engine = true, .is_shutting_down = true};
constexpr Surroundings kNoEngine{};

// clang-format off
const SpecialRow kSpecialRows[] = {
    {"create",           "Done",           kGuest,         "Ready Idle | record Ready objects then-live; reset backoff;"},
    {"create",           "Refused",        kShutdown,      "Creating Create.Recovered #0 | uncount;"},
    {"create",           "Lost",           kShutdown,      "Creating Create.Recovered #0 | uncount;"},
    {"undo create",      "Done",           kShutdown,      "Creating Create.Recovered #0 | uncount;"},
    {"recovered create", "EngineBack",     kNoEngine,      "Creating Create.Recovered | reset backoff;"},
    {"recovered create", "EngineBack",     kShutdown,      "Creating Create.Recovered | reset backoff;"},
    {"resume",           "Done",           kGuest,         "Ready Idle | record Ready objects then-live; reset backoff;"},
    {"resume",           "Done",           kGuestAndExecs, "Ready Idle | record Ready end-execs objects then-live; reset backoff;"},
    {"failed",           "Resume",         kExecs,         "Resuming Resume running Resume | record Accepted cancel-execs secret; start Resume;"},
    {"restart",          "Done",           kGuest,         "Ready Idle | record Ready objects restarts then-restarted; reset backoff;"},
    {"restart",          "Retry",          kShutdown,      "Ready Restart |"},
    {"ready",            "GuestLost",      kGuest,         "Ready Idle |"},
    {"ready",            "Recheck",        kGuest,         "Ready Inspect running Inspect | start Inspect;"},
    {"ready",            "EngineBack",     kGuest,         "Ready Idle | reset backoff;"},
    {"ready",            "EngineBack",     kShutdown,      "Ready Inspect | reset backoff;"},
    {"ready",            "Stop",           kShutdown,      "Stopping Stop | record StopRequested cancel-execs;"},
    {"inspect",          "GuestLost",      kGuest,         "Ready Inspect running Inspect |"},
    {"await restart",    "GuestConnected", kGuest,         "Ready AwaitRestart |"},
    {"stop refused thrice", "Refused",      kExecs,         "Failed Inspect running Inspect | record Failed:SANDBOX_STOP_FAILED end-unsent objects; start Inspect;"},
    {"stop refused thrice", "Refused",      kGuestAndExecs, "Failed Idle | record Failed:SANDBOX_STOP_FAILED end-unsent objects;"},
    {"stop",             "Done",           kShutdown,      "Stopping Stop |"},
    {"stop",             "Delete",         kShutdown,      "Deleting Delete running Stop | record DeleteRequested;"},
    {"delete",           "Refused",        kExecs,         "Failed Inspect running Inspect | record Failed:SANDBOX_DELETE_FAILED end-unsent objects; start Inspect;"},
    {"failed",           "GuestConnected", kGuestAndExecs, "Failed Idle | take guest;"},
    {"failed",           "GuestLost",      kExecs,         "Failed Inspect running Inspect | start Inspect;"},
    {"failed",           "GuestLost",      kGuestAndExecs, "Failed Idle |"},
    {"failed",           "Recheck",        kGuestAndExecs, "Failed Inspect running Inspect | start Inspect;"},
    {"failed",           "EngineBack",     kExecs,         "Failed Inspect running Inspect | reset backoff; start Inspect;"},
    {"inspect failed",   "SawExited",      kExecs,         "Failed Idle | record end-execs(it exited); reset backoff;"},
    {"inspect failed",   "SawRunning",     kExecs,         "Failed Idle | reset backoff;"},
    {"inspect failed",   "Refused",        kExecs,         "Failed Inspect backing off | back off;"},
    {"inspect failed",   "GuestConnected", kGuestAndExecs, "Failed Idle running Inspect | cancel; take guest;"},
    {"halt",             "GuestConnected", kGuestAndExecs, "Failed Halt running Halt | take guest;"},
    {"halt",             "Recheck",        kExecs,         "Failed Halt running Halt |"},
    {"ready",            "IsolationFailed", kReport,       "Ready Inspect running Inspect unisolated | record isolation; verify in 500ms; start Inspect;"},
    {"unisolated",       "IsolationFailed", kReport,       "Ready Inspect running Inspect unisolated | verify in 1000ms; start Inspect;"},
    {"paused",           "IsolationFailed", kReport,       "Ready Unpause running Unpause unisolated paused | verify in 1000ms; start Unpause;"},
    {"pause",            "IsolationFailed", kReport,       "Ready Unpause running Pause unisolated begun | verify in 1000ms; cancel;"},
    {"unpause",          "IsolationFailed", kReport,       "Ready Unpause running Unpause unisolated paused | verify in 1000ms;"},
    {"ready",            "IsolationFailed", kShutdown,     "Ready Inspect unisolated | record isolation; verify in 500ms;"},
    {"pause",            "Done",           kGuest,         "Ready Idle unisolated paused | record isolation; reset backoff;"},
    {"pause",            "Refused",        kGuest,         "Ready Idle unisolated | record isolation;"},
    {"pause",            "PausedByOthers", kGuest,         "Ready Idle unisolated | record isolation; reset backoff;"},
    {"pause inspects",   "Done",           kGuest,         "Ready Inspect running Inspect unisolated paused | record isolation; reset backoff; start Inspect;"},
    {"pause",            "GuestConnected", kGuest,         "Ready Pause running Pause unisolated begun | take guest;"},
    {"unpause",          "Done",           kGuest,         "Ready Idle unisolated released | record isolation; verify in 0ms; reset backoff;"},
    {"unpause inspects", "Done",           kGuest,         "Ready Inspect running Inspect unisolated released | record isolation; verify in 0ms; reset backoff; start Inspect;"},
    {"unpause",          "Retry",          kShutdown,      "Ready Unpause unisolated paused |"},
    {"pause waiting",    "BackoffOver",    kShutdown,      "Ready Pause.done? unisolated begun |"},
    {"unpause waiting",  "BackoffOver",    kShutdown,      "Ready Unpause unisolated paused |"},
};
// clang-format on

TEST(WorkTest, GuestsExecsTheEngineAndAShutdownMakeADifference) {
  const auto find = [](const auto& all, const std::string& name) {
    const auto found = std::ranges::find(all, name, [](const auto& each) { return each.name; });
    EXPECT_NE(found, all.end()) << name;
    return *found;
  };
  for (const SpecialRow& row : kSpecialRows) {
    const WorkState from = find(states(), row.from).state;
    const WorkInput input = find(inputs(), row.input).input;
    EXPECT_EQ(outcome(from, input, row.now), row.then)
        << "{\"" << row.from << "\", \"" << row.input << "\"}";
  }
}

// --- the beginning of a run of the daemon ---

TEST(WorkTest, ACreateIsRecordedAndThenBegun) {
  const auto accepted = advance(new_work(), input::Accept{}, kUsual);
  EXPECT_EQ(text(accepted.state), "Creating Create.First");
  EXPECT_EQ(text(accepted.step), " record Accepted Preparing secret;");
  EXPECT_EQ(outcome(accepted.state, input::Begin{}, kUsual),
            "Creating Create.First running Create | start Create;");
}

struct RecoveryRow {
  Lifecycle lifecycle;
  bool cleans_up;
  std::uint32_t attempts;
  Surroundings now;
  const char* readable;
  const char* unreadable;
};

// clang-format off
const RecoveryRow kRecoveryRows[] = {
    {Creating, false, 1, kUsual,
     "Creating Create.Again #2 running StartOver | record Preparing secret; start StartOver;",
     "Failed CleanUp running CleanUp | record Failed:CODE; start CleanUp;"},
    {Creating, false, 2, kUsual,
     "Creating Create.Again #3 running StartOver | record Preparing secret; start StartOver;",
     "Failed CleanUp #2 running CleanUp | record Failed:CODE; start CleanUp;"},
    {Creating, false, 3, kUsual,
     "Failed CleanUp #3 running CleanUp | record Failed:SANDBOX_CREATE_FAILED end-unsent objects; start CleanUp;",
     "Failed CleanUp #3 running CleanUp | record Failed:CODE; start CleanUp;"},
    {Creating, false, 1, kNoEngine,
     "Creating Create.Recovered |",
     "Failed CleanUp running CleanUp | record Failed:CODE; start CleanUp;"},
    {Resuming, false, 1, kUsual,
     "Resuming Resume #2 running Resume | record secret operation; start Resume;",
     "Failed Halt running Halt | record Failed:CODE; start Halt;"},
    {Ready, false, 1, kUsual,
     "Ready Idle awaiting | verify in 30000ms;",
     "Failed Halt running Halt | record Failed:CODE; start Halt;"},
    {Ready, false, 1, kExecs,
     "Ready Idle awaiting | verify in 30000ms;",
     "Failed Halt:CODE running Halt | start Halt;"},
    {Stopping, false, 1, kUsual,
     "Stopping Stop running Stop | record cancel-execs; start Stop;",
     "Failed Halt running Halt | record Failed:CODE; start Halt;"},
    {Stopping, false, 1, kExecs,
     "Stopping Stop running Stop | record cancel-execs; start Stop;",
     "Failed Halt:CODE running Halt | start Halt;"},
    {Stopped, false, 1, kUsual,
     "Stopped Idle |",
     "Failed Halt running Halt | record Failed:CODE; start Halt;"},
    {Failed, false, 1, kUsual,
     "Failed Idle |",
     "Failed Halt running Halt | start Halt;"},
    {Failed, true, 1, kUsual,
     "Failed CleanUp running CleanUp | start CleanUp;",
     "Failed CleanUp running CleanUp | start CleanUp;"},
    {Deleting, false, 1, kUsual,
     "Deleting Delete running Delete | start Delete;",
     "Deleting Delete running Delete | start Delete;"},
    {Deleted, false, 1, kUsual,
     "Deleted Idle |",
     "Deleted Idle |"},
};
// clang-format on

TEST(WorkTest, ARunOfTheDaemonContinuesWhatTheOneBeforeStored) {
  for (const RecoveryRow& row : kRecoveryRows) {
    const WorkState stored =
        restored_work({.state = row.lifecycle, .reason = "r"}, row.cleans_up, row.attempts);
    SCOPED_TRACE(text(stored));
    EXPECT_EQ(outcome(stored, input::Recover{}, row.now), row.readable);
    EXPECT_EQ(outcome(stored, input::RecoverUnreadable{kWhy}, row.now), row.unreadable);
  }
}

// Its end was reported and its execs have ended; it is not inspected, which would do both again.
TEST(WorkTest, AnInterruptedRestartIsRepeated) {
  const auto restored = [](Lifecycle lifecycle) {
    return restored_work({.state = lifecycle, .reason = "r"}, false, 1, {},
                         {.count = 2, .last_exit = "exit code 3"}, true);
  };
  EXPECT_TRUE(is_restarting(restored(Ready)));
  EXPECT_EQ(restored(Ready).restarts, (RestartState{.count = 2, .last_exit = "exit code 3"}));
  for (const Surroundings& now : {kUsual, kNoEngine}) {
    EXPECT_EQ(outcome(restored(Ready), input::Recover{}, now),
              "Ready Restart running Restart | start Restart;");
  }
  EXPECT_EQ(outcome(restored(Ready), input::RecoverUnreadable{kWhy}, kUsual),
            "Failed Halt running Halt | record Failed:CODE restarts; start Halt;");
  for (const Lifecycle lifecycle : {Stopping, Stopped, Failed, Deleting}) {
    EXPECT_FALSE(is_restarting(restored(lifecycle)));
  }
}

TEST(WorkTest, AThirdCrashDuringACreateSaysSo) {
  const auto [state, step] =
      advance(restored_work({.state = Creating, .reason = {}}, false, 3), input::Recover{}, kUsual);
  const auto& failed = std::get<event::Failed>(step.record->events.front());
  EXPECT_THAT(failed.failure.message, testing::HasSubstr("3 times"));
}

// --- one operation at a time ---

TEST(WorkTest, AnOperationThatIsNoLongerWantedIsCancelledAndItsEndStartsTheNext) {
  WorkState state = running(Creating, work::Create{});
  auto deleted = advance(state, input::Delete{"r"}, kUsual);
  EXPECT_EQ(text(deleted.state), "Deleting Delete running Create");
  EXPECT_TRUE(deleted.step.cancels);
  for (const OperationEnd end : {OperationEnd::Done, OperationEnd::Refused, OperationEnd::Retry,
                                 OperationEnd::Lost, OperationEnd::Cancelled}) {
    EXPECT_EQ(outcome(deleted.state, ended(end), kUsual),
              "Deleting Delete running Delete | start Delete;");
  }
}

TEST(WorkTest, ABackoffEndsForWhatCannotWait) {
  WorkState state = state_of(Stopping, work::Stop{}, activity::BackingOff{});
  EXPECT_EQ(outcome(state, input::EngineBack{}, kUsual),
            "Stopping Stop backing off | reset backoff; end backoff;");
  EXPECT_EQ(outcome(state, input::GuestConnected{}, kUsual),
            "Stopping Stop backing off | take guest;");
  EXPECT_EQ(outcome(state, input::BackoffOver{}, kUsual),
            "Stopping Stop running Stop | start Stop;");
  EXPECT_EQ(outcome(state, input::Delete{"r"}, kUsual),
            "Deleting Delete backing off | record DeleteRequested; end backoff;");
}

TEST(WorkTest, ACreateThatBacksOffIsNotCountedIfTheDaemonIsShutDown) {
  const WorkState state =
      state_of(Creating, work::Create{Attempt::Again}, activity::BackingOff{}, 2);
  EXPECT_EQ(outcome(state, input::BackoffOver{}, kShutdown),
            "Creating Create.Recovered | uncount;");
}

TEST(WorkTest, AnInspectionThatWasCancelledAndIsWantedAgainIsRepeated) {
  WorkState state = running(Ready, work::Inspect{});
  state = advance(state, input::GuestConnected{}, kGuest).state;
  EXPECT_EQ(text(state), "Ready Idle running Inspect");
  state = advance(state, input::GuestLost{}, kUsual).state;
  EXPECT_EQ(text(state), "Ready Inspect.again running Inspect awaiting");
  EXPECT_EQ(outcome(state, saw(PrimarySeen::Running), kUsual),
            "Ready Inspect running Inspect awaiting | reset backoff; start Inspect;");
}

// --- crashes ---

TEST(WorkTest, WaitsGrowWithEachCrashUntilTheContainerRanForLong) {
  Surroundings now{.now = 1h, .has_engine = true, .is_guest_connected = true};
  WorkState state = state_of(Ready, work::Idle{});
  const auto crash = [&] {
    state = advance(state, input::RecheckContainer{}, now).state;
    auto [after, step] = advance(state, saw(PrimarySeen::Exited), now);
    state = advance(after, input::RestartDue{}, now).state;
    state = advance(state, ended(OperationEnd::Done), now).state;
    EXPECT_EQ(text(state), "Ready Idle");
    return step.restart_in;
  };
  EXPECT_EQ(crash(), 100ms);
  EXPECT_EQ(crash(), 200ms);
  EXPECT_EQ(crash(), 400ms);
  now.now += CrashWindow::kLongEnough;
  EXPECT_EQ(crash(), 100ms);
}

TEST(WorkTest, ARestartIsReportedWithTheExitCodeAndCounted) {
  WorkState state = running(Ready, work::Inspect{});
  state.restarts = {.count = 4, .last_exit = "exit code 3"};
  input::Ended exit = saw(PrimarySeen::Exited);
  exit.inspection->loss = ContainerLoss{.how = "it exited with code 137", .exit_code = 137};
  auto [down, reported] = advance(state, exit, kUsual);
  EXPECT_EQ(reported.record->events, std::vector<LifecycleEvent>{(event::Preparing{
                                         .phase = "restart", .message = "exit code 137"})});
  EXPECT_EQ(down.restarts, (RestartState{.count = 4, .last_exit = "exit code 137"}));
  down = advance(down, input::RestartDue{}, kUsual).state;
  // A start that fails is neither an end of the container nor a restart.
  auto [refused, nothing] = advance(down, ended(OperationEnd::Refused), kUsual);
  EXPECT_FALSE(nothing.record.has_value());
  EXPECT_EQ(refused.restarts, down.restarts);
  refused = advance(refused, input::RestartDue{}, kUsual).state;
  const auto [up, ready] = advance(refused, ended(OperationEnd::Done), kUsual);
  EXPECT_EQ(ready.record->events, std::vector<LifecycleEvent>{event::Ready{}});
  EXPECT_EQ(up.restarts, (RestartState{.count = 5, .last_exit = "exit code 137"}));
}

TEST(WorkTest, ACommandThatIsDoneStopsItsSandboxForThatReason) {
  const auto [state, step] = advance(running(Ready, work::Inspect{}), saw_finished(), kUsual);
  EXPECT_EQ(state.lifecycle, (LifecycleStatus{.state = Stopping, .reason = "command_finished"}));
  EXPECT_EQ(state.restarts, (RestartState{.count = 0, .last_exit = "exit code 0"}));
  EXPECT_EQ(advance(state, ended(OperationEnd::Done), kUsual).step.record->events,
            std::vector<LifecycleEvent>{event::Stopped{"command_finished"}});
}

TEST(WorkTest, ACrashLoopEndsAsAFailureAndEndsEveryExec) {
  Surroundings now{.has_engine = true, .has_execs = true};
  WorkState state = running(Ready, work::Restart{});
  for (int i = 0; i < CrashWindow::kEndsForgiven; ++i) {
    state = advance(state, ended(OperationEnd::Refused), now).state;
    ASSERT_EQ(text(state), "Ready AwaitRestart");
    state = advance(state, input::RestartDue{}, now).state;
  }
  now.now += CrashWindow::kLongestSeries + 1s;
  const auto [after, step] = advance(state, ended(OperationEnd::Refused), now);
  EXPECT_EQ(text(after), "Failed Idle");
  EXPECT_EQ(text(step), " record Failed:CONTAINER_CRASHLOOP end-execs(it could not b) restarts;");
  EXPECT_EQ(after.crashes, CrashWindow());
}

// --- an isolation that does not hold ---

TEST(WorkTest, AGuestThatDoesNotAnswerForThirtySecondsIsReportedUntilItDoes) {
  Surroundings now{.has_engine = true, .pauses_unisolated = true};
  WorkState state = state_of(Ready, work::Idle{});
  const auto then = [&](const WorkInput& input) {
    auto [next, step] = advance(state, input, now);
    state = std::move(next);
    return text(step);
  };
  EXPECT_EQ(then(input::GuestLost{}), " verify in 30000ms; start Inspect;");
  now.now += 1s;
  EXPECT_EQ(then(saw(PrimarySeen::Running)), " reset backoff;");
  EXPECT_EQ(then(input::IsolationHolds{}), " verify in 29000ms;") << "it may be about to connect";
  now.now += 29s - 1ns;
  EXPECT_EQ(then(input::IsolationHolds{}), " verify in 1ms;");
  EXPECT_EQ(state.isolation.unverified, "");
  now.now += 1ns;
  EXPECT_EQ(then(input::IsolationHolds{}), " record isolation; verify in 30000ms;");
  EXPECT_NE(state.isolation.unverified, "");
  now.now += 30s;
  EXPECT_EQ(then(input::IsolationHolds{}), " verify in 30000ms;") << "as before";
  now.is_guest_connected = true;
  EXPECT_EQ(then(input::GuestConnected{}), " verify in 0ms; take guest;");
  EXPECT_NE(state.isolation.unverified, "") << "whoever connects has to answer";
  EXPECT_EQ(then(input::IsolationHolds{.from_inside = true}),
            " record isolation; clear verification;");
  EXPECT_EQ(state.isolation, IsolationState());
}

TEST(WorkTest, ASandboxIsPausedUntilItsIsolationHoldsAndVerifiedFromInsideAfterwards) {
  WorkState state = state_of(Ready, work::Idle{});
  const auto then = [&](const WorkInput& input) {
    auto [after, step] = advance(state, input, kGuest);
    state = std::move(after);
    return text(state) + " |" + text(step);
  };
  EXPECT_EQ(then(input::IsolationFailed{"open"}),
            "Ready Pause running Pause unisolated begun | record isolation; verify in 500ms; "
            "start Pause;");
  EXPECT_EQ(then(ended(OperationEnd::Done)),
            "Ready Idle unisolated paused | record isolation; reset backoff;");
  EXPECT_EQ(then(input::IsolationHolds{}),
            "Ready Unpause running Unpause unisolated paused | start Unpause;");
  EXPECT_EQ(then(ended(OperationEnd::Done)),
            "Ready Idle unisolated released | record isolation; verify in 0ms; reset backoff;");
  EXPECT_EQ(then(input::IsolationHolds{.from_inside = true}),
            "Ready Idle | record isolation; clear verification;");
  EXPECT_EQ(state.isolation, IsolationState());
}

TEST(WorkTest, OneThatFailsFromInsideAfterEveryUnpauseIsUnpausedMoreAndMoreRarely) {
  Surroundings now = kGuest;
  WorkState state = state_of(Ready, work::Idle{});
  const auto take = [&](const WorkInput& input) {
    auto [after, step] = advance(state, input, now);
    state = std::move(after);
    return step;
  };
  auto wait = take(input::IsolationFailed{"open"}).verify_in;
  EXPECT_EQ(wait, 500ms);
  take(ended(OperationEnd::Done));
  for (const auto next : {1000ms, 2000ms, 4000ms, 8000ms, 16000ms, 30000ms, 30000ms}) {
    now.now += *wait;
    EXPECT_EQ(take(input::IsolationHolds{}).start, OperationKind::Unpause);
    take(ended(OperationEnd::Done));
    wait = take(input::IsolationFailed{"open"}).verify_in;
    EXPECT_EQ(wait, next);
    take(ended(OperationEnd::Done));
    // A repair, for example, has it verified earlier.
    now.now += *wait - 1ms;
    EXPECT_EQ(text(take(input::IsolationHolds{})), "");
    now.now += 1ms - *wait;
  }
}

TEST(WorkTest, AnIsolationThatHoldsBeforeThePauseIsDoneUnpauses) {
  WorkState state = with(kPausing, running(Ready, work::Pause{}));
  state = advance(state, input::IsolationHolds{}, kGuest).state;
  EXPECT_EQ(text(state), "Ready Unpause running Pause unisolated begun");
  for (const OperationEnd end :
       {OperationEnd::Done, OperationEnd::Retry, OperationEnd::Cancelled}) {
    EXPECT_EQ(outcome(state, ended(end), kGuest),
              "Ready Unpause running Unpause unisolated begun | start Unpause;");
  }
}

TEST(WorkTest, AnIsolationThatFailsDuringTheUnpausePausesAgain) {
  WorkState state = with(kPaused, running(Ready, work::Unpause{}));
  state = advance(state, input::IsolationFailed{"open"}, kGuest).state;
  EXPECT_EQ(text(state), "Ready Pause.done? running Unpause unisolated paused");
  EXPECT_EQ(outcome(state, ended(OperationEnd::Done), kGuest),
            "Ready Pause.done? running Pause unisolated paused | start Pause;");
}

TEST(WorkTest, APauseWhoseAnswerWasLostMayBeDone) {
  WorkState state = with(kPausing, running(Ready, work::Pause{}));
  state = advance(state, ended(OperationEnd::Retry), kGuest).state;
  EXPECT_EQ(text(state), "Ready Pause.done? backing off unisolated begun");
}

TEST(WorkTest, APauseIsRestoredWithItsReasonWhileItShouldRun) {
  for (const Lifecycle lifecycle : {Ready, Stopping, Failed, Deleting}) {
    const WorkState state = restored_work({.state = lifecycle, .reason = "r"}, false, 1,
                                          {.problem = "open", .paused = Paused::Begun});
    EXPECT_EQ(state.isolation.problem, lifecycle == Ready ? "open" : "");
    EXPECT_EQ(state.isolation.paused, Paused::Begun);
  }
}

// --- what holds everywhere ---

struct Edge {
  WorkState before;
  WorkInput input;
  Surroundings now;
  WorkTransition after;
};

// Everything that can be reached, whatever happens in whatever order.
class Exploration {
 public:
  Exploration() {
    const std::vector<WorkInput> recoveries{input::Recover{}, input::RecoverUnreadable{kWhy}};
    for (const Lifecycle lifecycle :
         {Creating, Resuming, Ready, Stopping, Stopped, Failed, Deleting, Deleted}) {
      for (const std::uint32_t attempts : {1U, kMostAttempts}) {
        for (const bool is_restarting : {false, true}) {
          visit(restored_work({.state = lifecycle, .reason = "r"}, false, attempts, {}, {},
                              is_restarting),
                recoveries);
        }
      }
    }
    visit(restored_work({.state = Failed, .reason = {}}, true, 1), recoveries);
    visit(new_work(), {input::Begin{}});
    add(with(kUnverified, state_of(Ready, work::Idle{})));  // time does not pass here
    std::vector<WorkInput> all;
    for (const auto& [name, input] : inputs()) all.push_back(input);
    while (!pending_.empty()) {
      const WorkState state = pending_.front();
      pending_.pop_front();
      visit(state, all);
    }
  }

  const std::vector<Edge>& edges() const { return edges_; }
  const std::map<std::string, WorkState>& states() const { return states_; }

 private:
  void visit(const WorkState& state, const std::vector<WorkInput>& inputs) {
    for (const WorkInput& input : inputs) {
      if (!can_happen(state, input)) continue;
      for (unsigned facts = 0; facts < 32; ++facts) {
        const Surroundings now{.has_engine = (facts & 1U) != 0,
                               .is_guest_connected = (facts & 2U) != 0,
                               .has_execs = (facts & 4U) != 0,
                               .is_shutting_down = (facts & 8U) != 0,
                               .pauses_unisolated = (facts & 16U) != 0};
        edges_.push_back({state, input, now, advance(state, input, now)});
        if (!now.is_shutting_down) add(edges_.back().after.state);
      }
    }
  }

  void add(WorkState state) {
    state.crashes = {};  // how often it crashed makes no other state
    state.restarts = {};
    state.isolation.failures = 0;
    state.isolation.earliest_unpause = {};
    state.attempts = std::min(state.attempts, kMostAttempts);
    if (states_.emplace(text(state), state).second) pending_.push_back(state);
  }

  std::vector<Edge> edges_;
  std::map<std::string, WorkState> states_;
  std::deque<WorkState> pending_;
};

const Exploration& exploration() {
  static const Exploration everything;
  return everything;
}

void for_each_edge(const std::function<void(const Edge&)>& check) {
  for (const Edge& edge : exploration().edges()) {
    check(edge);
    if (!testing::Test::HasFailure()) continue;
    ADD_FAILURE() << text(edge.before) << ", input " << edge.input.index() << " -> "
                  << text(edge.after.state) << " |" << text(edge.after.step);
    return;
  }
}

TEST(EveryWorkStateTest, WorkFitsItsLifecycleState) {
  const std::map<Lifecycle, std::set<std::string>> allowed{
      {Creating, {"Create", "UndoCreate"}},
      {Resuming, {"Resume", "UndoResume"}},
      {Ready, {"Idle", "Inspect", "AwaitRestart", "Restart", "Pause", "Unpause"}},
      {Stopping, {"Stop"}},
      {Stopped, {"Idle", "Inspect"}},
      {Failed, {"Idle", "Inspect", "CleanUp", "Halt"}},
      {Deleting, {"Delete"}},
      {Deleted, {"Idle"}}};
  std::map<Lifecycle, std::set<std::string>> seen;
  for (const auto& [name, state] : exploration().states()) {
    std::string work = text(state.work);
    work = work.substr(0, work.find_first_of("-.:"));
    seen[state.lifecycle.state].insert(work);
  }
  EXPECT_EQ(seen, allowed);
}

TEST(EveryWorkStateTest, AtMostOneOperationRuns) {
  for_each_edge([](const Edge& edge) {
    const bool has_ended = std::holds_alternative<input::Ended>(edge.input);
    const bool was_running = std::holds_alternative<activity::Running>(edge.before.activity);
    if (was_running && !has_ended) {
      EXPECT_FALSE(edge.after.step.start.has_value());
      EXPECT_EQ(edge.after.state.activity, edge.before.activity);
    }
    if (edge.after.step.start) {
      EXPECT_EQ(edge.after.state.activity, Activity(activity::Running{*edge.after.step.start}));
      EXPECT_EQ(edge.after.step.start, wanted_operation(edge.after.state.work));
    }
    if (edge.after.step.backoff == WorkStep::Backoff::Begin) {
      EXPECT_EQ(edge.after.state.activity, Activity(activity::BackingOff{}));
    }
  });
}

TEST(EveryWorkStateTest, WhatIsWantedRunsOrWaitsForSomethingThatComes) {
  for_each_edge([](const Edge& edge) {
    const WorkState& state = edge.after.state;
    const auto wanted = wanted_operation(state.work);
    if (!wanted || edge.now.is_shutting_down) return;
    if (std::holds_alternative<activity::None>(state.activity)) {
      // Only a create that an earlier run of the daemon began waits for the engine to be back.
      EXPECT_EQ(text(state.work), "Create.Recovered");
      const bool is_back = std::holds_alternative<input::EngineBack>(edge.input);
      EXPECT_FALSE(is_back && edge.now.has_engine);
    }
    const auto* running = std::get_if<activity::Running>(&state.activity);
    if (running != nullptr && running->kind != *wanted) {
      // It was cancelled when it ceased to be wanted; its end starts what is.
      EXPECT_TRUE(edge.after.step.cancels || wanted_operation(edge.before.work) == wanted);
    }
  });
}

TEST(EveryWorkStateTest, ARestartHasItsTimer) {
  for_each_edge([](const Edge& edge) {
    const bool awaited = std::holds_alternative<work::AwaitRestart>(edge.before.work);
    const bool awaits = std::holds_alternative<work::AwaitRestart>(edge.after.state.work);
    EXPECT_EQ(edge.after.step.restart_in.has_value(), awaits && !awaited);
    EXPECT_EQ(edge.after.step.clears_restart, awaited && !awaits);
  });
}

// Whatever happens in between: a restart begins with one event and ends with one.
TEST(EveryWorkStateTest, ARestartIsReportedOnce) {
  for_each_edge([](const Edge& edge) {
    const bool was_ready = edge.before.lifecycle.state == Ready;
    const bool was_restarting = is_restarting(edge.before);
    std::size_t preparing = 0;
    std::size_t ready = 0;
    for (const LifecycleEvent& event :
         edge.after.step.record ? edge.after.step.record->events : std::vector<LifecycleEvent>()) {
      if (was_ready && std::holds_alternative<event::Preparing>(event)) ++preparing;
      if (was_ready && std::holds_alternative<event::Ready>(event)) ++ready;
    }
    EXPECT_EQ(preparing, !was_restarting && is_restarting(edge.after.state) ? 1U : 0U);
    EXPECT_EQ(ready, was_restarting && is_up(edge.after.state) ? 1U : 0U);
    EXPECT_EQ(edge.after.state.restarts.count, edge.before.restarts.count + ready);
    const bool has_changed = was_restarting != is_restarting(edge.after.state) ||
                             edge.before.restarts != edge.after.state.restarts;
    EXPECT_EQ(edge.after.step.record && edge.after.step.record->has_restarts, has_changed);
  });
}

// What should run is inspected unless its guest vouches for it, and unless it is known to be down.
TEST(EveryWorkStateTest, ARecheckOfAContainerThatShouldRunIsNeverForgotten) {
  for_each_edge([](const Edge& edge) {
    const bool has_guest = edge.now.is_guest_connected;
    const bool is_doubted = std::holds_alternative<input::RecheckContainer>(edge.input) ||
                            (std::holds_alternative<input::GuestLost>(edge.input) && !has_guest) ||
                            (std::holds_alternative<input::EngineBack>(edge.input) && !has_guest);
    const bool became_ready = edge.before.lifecycle.state != Ready &&
                              edge.after.state.lifecycle.state == Ready && !has_guest;
    if (edge.after.state.lifecycle.state != Ready || !(is_doubted || became_ready)) return;
    EXPECT_FALSE(std::holds_alternative<work::Idle>(edge.after.state.work));
  });
}

TEST(EveryWorkStateTest, NothingLosesADelete) {
  for_each_edge([](const Edge& edge) {
    const Lifecycle before = edge.before.lifecycle.state;
    const Lifecycle after = edge.after.state.lifecycle.state;
    if (std::holds_alternative<input::Delete>(edge.input)) {
      EXPECT_TRUE(after == Deleting || after == Deleted);
    }
    if (before == Deleted) EXPECT_EQ(after, Deleted);
    if (before != Deleting || after == Deleting) return;
    // Only the end of the delete itself ends it.
    EXPECT_EQ(edge.before.activity, Activity(activity::Running{OperationKind::Delete}));
    const auto* end = std::get_if<input::Ended>(&edge.input);
    ASSERT_NE(end, nullptr);
    const bool is_refused = end->end == OperationEnd::Refused || end->end == OperationEnd::Lost;
    EXPECT_EQ(after, is_refused ? Failed : Deleted);
  });
}

TEST(EveryWorkStateTest, TheStateIsWhatTheRecordedEventsLeadTo) {
  for_each_edge([](const Edge& edge) {
    LifecycleStatus lifecycle = edge.before.lifecycle;
    if (edge.after.step.record) {
      for (const LifecycleEvent& event : edge.after.step.record->events)
        lifecycle = apply(lifecycle, event);
    }
    const auto* halt = std::get_if<work::Halt>(&edge.after.state.work);
    if (halt != nullptr && halt->unreported) return;  // its failure is recorded later
    EXPECT_EQ(lifecycle, edge.after.state.lifecycle);
  });
}

bool is_verified_again(const WorkState& state) {
  return !state.isolation.problem.empty() || state.isolation.unanswered_since;
}

// What is paused, or was, is verified again: by a timer, at once, or when the operation ends.
TEST(EveryWorkStateTest, APausedSandboxHasAProblemThatIsVerifiedAgain) {
  for_each_edge([](const Edge& edge) {
    const WorkState& state = edge.after.state;
    const bool is_paused = state.isolation.paused != Paused::No;
    if (state.lifecycle.state == Ready && is_paused) EXPECT_FALSE(state.isolation.problem.empty());
    if (state.lifecycle.state != Ready) EXPECT_TRUE(state.isolation.problem.empty());
    if (std::holds_alternative<work::Pause>(state.work)) EXPECT_TRUE(is_paused);
    if (std::holds_alternative<work::Unpause>(state.work)) EXPECT_TRUE(is_paused);
    const bool is_new = edge.before.isolation.problem.empty() && !state.isolation.problem.empty();
    if (is_new) EXPECT_TRUE(edge.after.step.verify_in.has_value());
    const bool is_over = is_verified_again(edge.before) && !is_verified_again(state);
    EXPECT_EQ(edge.after.step.clears_verification, is_over);
    const bool has_changed = edge.before.isolation.problem != state.isolation.problem ||
                             edge.before.isolation.paused != state.isolation.paused ||
                             edge.before.isolation.unverified != state.isolation.unverified;
    EXPECT_EQ(edge.after.step.record && edge.after.step.record->has_isolation, has_changed);
  });
}

// A guest that does not answer is waited for, with a timer, only where it should be and nothing
// worse is known; only an answer or the end of that ends it.
TEST(EveryWorkStateTest, AGuestThatDoesNotAnswerIsWaitedForWhileItShouldBeThere) {
  for_each_edge([](const Edge& edge) {
    const IsolationState& before = edge.before.isolation;
    const IsolationState& after = edge.after.state.isolation;
    if (!after.unverified.empty()) EXPECT_TRUE(after.unanswered_since.has_value());
    if (after.unanswered_since) {
      EXPECT_TRUE(is_up(edge.after.state));
      EXPECT_TRUE(after.problem.empty());
      if (!before.unanswered_since) EXPECT_TRUE(edge.after.step.verify_in.has_value());
    }
    if (!before.unanswered_since || after.unanswered_since) return;
    const auto* holds = std::get_if<input::IsolationHolds>(&edge.input);
    EXPECT_TRUE((holds != nullptr && holds->from_inside) || !after.problem.empty() ||
                !is_up(edge.after.state));
  });
}

// Nothing but a verification or the end of its container unpauses what was paused.
TEST(EveryWorkStateTest, OnlyAVerificationThatSucceedsUnpauses) {
  for_each_edge([](const Edge& edge) {
    const bool unpauses = std::holds_alternative<work::Unpause>(edge.after.state.work) &&
                          !std::holds_alternative<work::Unpause>(edge.before.work);
    if (!unpauses) return;
    const bool is_reported =
        std::holds_alternative<input::IsolationFailed>(edge.input) && !edge.now.pauses_unisolated;
    EXPECT_TRUE(std::holds_alternative<input::IsolationHolds>(edge.input) || is_reported);
  });
}

// What a daemon that is killed here has stored leads the next one to the same operation.
TEST(EveryWorkStateTest, AnInterruptedOperationIsContinuedByTheNextRunOfTheDaemon) {
  const std::map<OperationKind, OperationKind> continued{
      {OperationKind::Create, OperationKind::StartOver},
      {OperationKind::StartOver, OperationKind::StartOver},
      {OperationKind::UndoCreate, OperationKind::StartOver},
      {OperationKind::Resume, OperationKind::Resume},
      {OperationKind::UndoResume, OperationKind::Resume},
      {OperationKind::Stop, OperationKind::Stop},
      {OperationKind::Delete, OperationKind::Delete},
      {OperationKind::CleanUp, OperationKind::CleanUp},
      {OperationKind::Inspect, OperationKind::Inspect},
      {OperationKind::Restart, OperationKind::Restart},
      {OperationKind::Pause, OperationKind::Inspect},
      {OperationKind::Unpause, OperationKind::Inspect}};
  for (const auto& [name, state] : exploration().states()) {
    SCOPED_TRACE(name);
    const auto wanted = wanted_operation(state.work);
    // Unreadable ones are found unreadable again; execs outlive a failure in the store too.
    if (std::holds_alternative<work::Halt>(state.work) || state.lifecycle.state == Failed) {
      if (wanted != OperationKind::CleanUp) continue;
    }
    WorkState next = restored_work(
        state.lifecycle, cleans_up(state), std::min(state.attempts, kMostAttempts - 1),
        {.problem = state.isolation.problem, .paused = state.isolation.paused}, state.restarts,
        is_restarting(state));
    next = advance(next, input::Recover{}, kUsual).state;
    if (std::holds_alternative<activity::None>(next.activity)) {
      next = advance(next, input::EngineBack{}, kUsual).state;
    }
    if (wanted) {
      EXPECT_EQ(next.activity, Activity(activity::Running{continued.at(*wanted)}));
    } else if (is_restarting(state)) {
      EXPECT_EQ(next.activity, Activity(activity::Running{OperationKind::Restart}));
    } else if (state.lifecycle.state == Ready || state.lifecycle.state == Stopped) {
      EXPECT_EQ(next.activity, Activity(activity::Running{OperationKind::Inspect}));
    }
  }
}

}  // namespace
}  // namespace agbox
