// SPDX-License-Identifier: Apache-2.0
// Bugs for the daemon of the robustness tests: AGBOX_PLANTED_BUG names the one that it has. Calls
// between the layers go through the functions here (planted_symbols.py finds the linker's names);
// each returns what the layer below does, unless its bug is planted.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "control/all_events.h"
#include "control/directory.h"
#include "control/event_cursor.h"
#include "control/event_feed.h"
#include "model/reasons.h"
#include "model/sandbox/companion_plan.h"
#include "model/sandbox/lifecycle.h"
#include "model/sandbox/orphans.h"
#include "model/sandbox/time_to_live.h"
#include "model/sandbox/work.h"
#include "planted_symbols.h"
#include "store/store.h"

namespace agbox {
namespace {

using LabelSelector = google::protobuf::Map<std::string, std::string>;
using Decided = Result<std::vector<LifecycleEvent>>;
using Ttl = std::optional<std::chrono::nanoseconds>;
template <class T>
using Reply = Directory::Reply<T>;

bool is_planted(std::string_view bug) {
  static const char* const planted = std::getenv("AGBOX_PLANTED_BUG");
  return planted != nullptr && bug == planted;
}

// True for every second call of those that could show the bug: the others are right.
bool is_next_one() {
  static bool is_next = false;
  is_next = !is_next;
  return is_next;
}

}  // namespace

// --- the tables of src/model ---

WorkTransition real_advance(WorkState state, const WorkInput& input,
                            const Surroundings& now) asm("__real_" AGBOX_ADVANCE);
WorkTransition planted_advance(WorkState state, const WorkInput& input,
                               const Surroundings& now) asm("__wrap_" AGBOX_ADVANCE);
WorkTransition planted_advance(WorkState state, const WorkInput& input, const Surroundings& now) {
  WorkInput given = input;
  const bool recovers_create =
      std::holds_alternative<input::Recover>(input) && state.lifecycle.state == Lifecycle::Creating;
  if (is_planted("a create fails at its first crash") && recovers_create) {
    state.attempts = kMostAttempts;
  }
  const bool recovers_delete =
      std::holds_alternative<input::Recover>(input) && state.lifecycle.state == Lifecycle::Deleting;
  if (is_planted("a delete is forgotten over a restart") && recovers_delete) {
    state.work = work::Idle{};
  }
  if (auto* ended = std::get_if<input::Ended>(&given);
      ended != nullptr && is_planted("an engine that does not answer has refused") &&
      ended->end == OperationEnd::Retry) {
    ended->end = OperationEnd::Refused;
  }
  WorkTransition next = real_advance(std::move(state), given, now);
  if (is_planted("a stop is not announced") && next.step.record) {
    std::erase_if(next.step.record->events, [](const LifecycleEvent& event) {
      return std::holds_alternative<event::StopRequested>(event);
    });
  }
  if (is_planted("a resume makes another container") && next.step.start == OperationKind::Resume) {
    next.step.start = OperationKind::StartOver;
  }
  if (is_planted("a restart is announced twice") && next.step.record && is_restarting(next.state)) {
    auto& events = next.step.record->events;
    if (!events.empty()) events.push_back(events.back());
  }
  if (is_planted("a restart is not counted") && next.step.record &&
      next.step.record->then == Record::Then::IsRestarted) {
    --next.state.restarts.count;
  }
  const Lifecycle after = next.state.lifecycle.state;
  if (is_planted("execs outlive the stop") && next.step.record &&
      (after == Lifecycle::Stopping || after == Lifecycle::Stopped)) {
    next.step.record->execs = ExecsChange::Keep;
  }
  return next;
}

Decided real_decide(const std::string& sandbox_id, const LifecycleStatus& lifecycle,
                    const LifecycleCommand& command) asm("__real_" AGBOX_DECIDE);
Decided planted_decide(const std::string& sandbox_id, const LifecycleStatus& lifecycle,
                       const LifecycleCommand& command) asm("__wrap_" AGBOX_DECIDE);
Decided planted_decide(const std::string& sandbox_id, const LifecycleStatus& lifecycle,
                       const LifecycleCommand& command) {
  const bool is_stop = std::holds_alternative<command::Stop>(command);
  // The work table asks without an ID.
  if (is_planted("a stop of a ready sandbox is refused") && is_stop && !sandbox_id.empty() &&
      lifecycle.state == Lifecycle::Ready && is_next_one()) {
    return fail(reason::kSandboxInvalidState, "sandbox " + sandbox_id + " is not ready");
  }
  return real_decide(sandbox_id, lifecycle, command);
}

v1::SandboxEvent real_to_message(const std::string& sandbox_id, const LifecycleStatus& after,
                                 const LifecycleEvent& event) asm("__real_" AGBOX_TO_MESSAGE);
v1::SandboxEvent planted_to_message(const std::string& sandbox_id, const LifecycleStatus& after,
                                    const LifecycleEvent& event) asm("__wrap_" AGBOX_TO_MESSAGE);
v1::SandboxEvent planted_to_message(const std::string& sandbox_id, const LifecycleStatus& after,
                                    const LifecycleEvent& event) {
  v1::SandboxEvent message = real_to_message(sandbox_id, after, event);
  if (is_planted("a stop that is requested counts as done") &&
      message.event_type() == v1::SANDBOX_STOP_REQUESTED) {
    message.set_sandbox_state(v1::SANDBOX_STATE_STOPPED);
  }
  return message;
}

Ttl real_time_to_live(Lifecycle state, bool has_execs, Ttl own_idle_ttl,
                      const TimesToLive& ttls) asm("__real_" AGBOX_TIME_TO_LIVE);
Ttl planted_time_to_live(Lifecycle state, bool has_execs, Ttl own_idle_ttl,
                         const TimesToLive& ttls) asm("__wrap_" AGBOX_TIME_TO_LIVE);
Ttl planted_time_to_live(Lifecycle state, bool has_execs, Ttl own_idle_ttl,
                         const TimesToLive& ttls) {
  const Ttl ttl = real_time_to_live(state, has_execs, own_idle_ttl, ttls);
  const bool is_early =
      (is_planted("an idle sandbox is stopped early") && state == Lifecycle::Ready) ||
      (is_planted("a history is purged early") && state == Lifecycle::Deleted);
  return ttl && is_early ? Ttl(*ttl / 4) : ttl;
}

Judgement real_judge_container(const SandboxClaim& claim, const std::string& container_id,
                               bool is_primary) asm("__real_" AGBOX_JUDGE_CONTAINER);
Judgement planted_judge_container(const SandboxClaim& claim, const std::string& container_id,
                                  bool is_primary) asm("__wrap_" AGBOX_JUDGE_CONTAINER);
Judgement planted_judge_container(const SandboxClaim& claim, const std::string& container_id,
                                  bool is_primary) {
  const bool is_in_use = claim.kind == SandboxClaim::Kind::Listed;
  if (is_planted("the janitor removes what is in use") && is_in_use) {
    return {.fate = Fate::Remove, .reason = "a planted bug"};
  }
  return real_judge_container(claim, container_id, is_primary);
}

CompanionStep real_companion_plan(const CompanionView& view) asm("__real_" AGBOX_COMPANION_PLAN);
CompanionStep planted_companion_plan(const CompanionView& view) asm("__wrap_" AGBOX_COMPANION_PLAN);
CompanionStep planted_companion_plan(const CompanionView& view) {
  const CompanionStep step = real_companion_plan(view);
  const bool has_ended = step == CompanionStep::Restart;
  if (is_planted("a companion that ends is not noticed") && has_ended) return CompanionStep::Wait;
  return step;
}

// --- the store ---

using OnCommitted = std::function<void(Result<Committed>)>;
void real_append(Store* store, Change change, OnCommitted on_committed) asm("__real_" AGBOX_APPEND);
void planted_append(Store* store, Change change,
                    OnCommitted on_committed) asm("__wrap_" AGBOX_APPEND);
void planted_append(Store* store, Change change, OnCommitted on_committed) {
  const auto is_failure = [](const Mutation& mutation) {
    const auto* append = std::get_if<change::AppendEvent>(&mutation);
    return append != nullptr && append->event.event_type() == v1::COMPANION_CONTAINER_FAILED;
  };
  const auto failure = std::ranges::find_if(change.mutations, is_failure);
  if (is_planted("an outage of a companion is reported twice") &&
      failure != change.mutations.end()) {
    change.mutations.insert(failure, Mutation(*failure));
  }
  real_append(store, std::move(change), std::move(on_committed));
}

Result<LoadedSandboxes> real_load(Store* store) asm("__real_" AGBOX_LOAD);
Result<LoadedSandboxes> planted_load(Store* store) asm("__wrap_" AGBOX_LOAD);
Result<LoadedSandboxes> planted_load(Store* store) {
  auto loaded = real_load(store);
  if (!loaded) return loaded;
  for (SandboxRecord& record : loaded->sandboxes) {
    if (is_planted("labels are forgotten over a restart")) record.spec.clear_labels();
    if (is_planted("ports are forgotten over a restart")) record.spec.clear_ports();
    if (is_planted("hooks are forgotten over a restart")) {
      for (auto& [name, container] : record.containers) {
        if (container.has_companion()) container.mutable_companion()->clear_hooks_done();
      }
    }
    const bool is_being_created = record.status.state == v1::SANDBOX_STATE_PENDING;
    if (is_planted("a copy is empty after a crash during its create") && is_being_created) {
      for (v1::CopySpec& copy : *record.spec.mutable_copies()) copy.add_exclude_patterns("*");
    }
    if (is_planted("a sandbox is younger after a restart")) {
      record.created_at += std::chrono::seconds(1);
    }
  }
  return loaded;
}

// --- what src/rpc asks control for ---

Result<v1::SandboxHandle> real_get(const Directory* directory,
                                   const std::string& sandbox_id) asm("__real_" AGBOX_GET);
Result<v1::SandboxHandle> planted_get(const Directory* directory,
                                      const std::string& sandbox_id) asm("__wrap_" AGBOX_GET);
Result<v1::SandboxHandle> planted_get(const Directory* directory, const std::string& sandbox_id) {
  auto handle = real_get(directory, sandbox_id);
  if (!handle) return handle;
  static std::map<std::string, v1::SandboxState> before;
  const v1::SandboxState state = handle->state();
  const auto known = before.find(sandbox_id);
  if (is_planted("Get shows the state of an earlier event") && known != before.end()) {
    handle->set_state(known->second);
  }
  before[sandbox_id] = state;
  return handle;
}

Result<v1::ListSandboxesResponse> real_list(
    const Directory* directory, const v1::ListSandboxesRequest& request) asm("__real_" AGBOX_LIST);
Result<v1::ListSandboxesResponse> planted_list(
    const Directory* directory, const v1::ListSandboxesRequest& request) asm("__wrap_" AGBOX_LIST);
Result<v1::ListSandboxesResponse> planted_list(const Directory* directory,
                                               const v1::ListSandboxesRequest& request) {
  auto page = real_list(directory, request);
  if (is_planted("the last sandbox of a page is left out") && page &&
      !page->next_page_token().empty()) {
    page->mutable_sandboxes()->RemoveLast();
  }
  return page;
}

void real_create(Directory* directory, SandboxSpec spec, std::string sandbox_id,
                 Reply<v1::SandboxHandle> reply) asm("__real_" AGBOX_CREATE);
void planted_create(Directory* directory, SandboxSpec spec, std::string sandbox_id,
                    Reply<v1::SandboxHandle> reply) asm("__wrap_" AGBOX_CREATE);
void planted_create(Directory* directory, SandboxSpec spec, std::string sandbox_id,
                    Reply<v1::SandboxHandle> reply) {
  auto forgiving = [directory, sandbox_id, reply](Result<v1::SandboxHandle> handle) {
    const bool is_taken = !handle && handle.error().reason() == reason::kSandboxIdAlreadyExists;
    if (is_planted("an id is given twice") && is_taken)
      return reply(real_get(directory, sandbox_id));
    reply(std::move(handle));
  };
  real_create(directory, std::move(spec), sandbox_id, std::move(forgiving));
}

void real_remove_matching(
    Directory* directory, const LabelSelector& selector,
    Reply<std::vector<std::string>> reply) asm("__real_" AGBOX_REMOVE_MATCHING);
void planted_remove_matching(
    Directory* directory, const LabelSelector& selector,
    Reply<std::vector<std::string>> reply) asm("__wrap_" AGBOX_REMOVE_MATCHING);
void planted_remove_matching(Directory* directory, const LabelSelector& selector,
                             Reply<std::vector<std::string>> reply) {
  if (is_planted("DeleteSandboxes deletes nothing")) return reply(std::vector<std::string>{});
  real_remove_matching(directory, selector, std::move(reply));
}

void real_find_exec_output(Directory* directory, const std::string& exec_id, OnExecEnd on_end,
                           Reply<ExecOutputSource> reply) asm("__real_" AGBOX_FIND_EXEC_OUTPUT);
void planted_find_exec_output(Directory* directory, const std::string& exec_id, OnExecEnd on_end,
                              Reply<ExecOutputSource> reply) asm("__wrap_" AGBOX_FIND_EXEC_OUTPUT);
void planted_find_exec_output(Directory* directory, const std::string& exec_id, OnExecEnd on_end,
                              Reply<ExecOutputSource> reply) {
  auto confused = [reply](Result<ExecOutputSource> source) {
    if (is_planted("the two streams of an exec are confused") && source) {
      std::swap(source->stdout_path, source->stderr_path);
    }
    reply(std::move(source));
  };
  real_find_exec_output(directory, exec_id, std::move(on_end), std::move(confused));
}

EventSubscription::Next real_next(EventSubscription* subscription) asm("__real_" AGBOX_NEXT);
EventSubscription::Next planted_next(EventSubscription* subscription) asm("__wrap_" AGBOX_NEXT);
EventSubscription::Next planted_next(EventSubscription* subscription) {
  static std::map<EventSubscription*, std::weak_ptr<EventSubscription>> over;
  const auto ended = over.find(subscription);
  if (ended != over.end() && !ended->second.expired()) return EventSubscription::End{};
  auto next = real_next(subscription);
  const auto* item = std::get_if<EventSubscription::Item>(&next);
  if (item == nullptr) return next;
  const v1::SandboxEvent& event = item->event->event;
  if (is_planted("a stream ends after a stop") && event.event_type() == v1::SANDBOX_STOPPED) {
    over[subscription] = subscription->weak_from_this();
  }
  const bool is_shown_exec = item->is_snapshot && event.event_id().contains("-snapshot-");
  const bool is_start = !item->is_snapshot && event.event_type() == v1::EXEC_STARTED;
  const bool is_skipped = (is_planted("a stream skips the start of an exec") && is_start) ||
                          (is_planted("a snapshot shows no exec") && is_shown_exec);
  return is_skipped ? planted_next(subscription) : std::move(next);
}

AllEventsSubscription::Next real_next_of_all(AllEventsSubscription* subscription) asm(
    "__real_" AGBOX_NEXT_OF_ALL);
AllEventsSubscription::Next planted_next_of_all(AllEventsSubscription* subscription) asm(
    "__wrap_" AGBOX_NEXT_OF_ALL);
AllEventsSubscription::Next planted_next_of_all(AllEventsSubscription* subscription) {
  auto next = real_next_of_all(subscription);
  const auto* item = std::get_if<AllEventsSubscription::Item>(&next);
  const bool is_start =
      item != nullptr && item->event && item->event->event.event_type() == v1::EXEC_STARTED;
  if (is_planted("the stream of all sandboxes skips the start of an exec") && is_start) {
    return planted_next_of_all(subscription);
  }
  return next;
}

Result<std::uint64_t> real_parse_event_cursor(
    std::string_view instance_id, std::uint64_t newest,
    const std::string& cursor) asm("__real_" AGBOX_PARSE_EVENT_CURSOR);
Result<std::uint64_t> planted_parse_event_cursor(
    std::string_view instance_id, std::uint64_t newest,
    const std::string& cursor) asm("__wrap_" AGBOX_PARSE_EVENT_CURSOR);
Result<std::uint64_t> planted_parse_event_cursor(std::string_view instance_id, std::uint64_t newest,
                                                 const std::string& cursor) {
  auto position = real_parse_event_cursor(instance_id, newest, cursor);
  if (is_planted("a cursor resumes one event too early") && position && *position > 0) --*position;
  return position;
}

// The linker compares no types.
template <class Real, class Planted>
constexpr bool is_alike = std::is_same_v<Real, Planted>;
static_assert(is_alike<decltype(&advance), decltype(&planted_advance)>);
static_assert(is_alike<decltype(&decide), decltype(&planted_decide)>);
static_assert(is_alike<decltype(&to_message), decltype(&planted_to_message)>);
static_assert(is_alike<decltype(&time_to_live), decltype(&planted_time_to_live)>);
static_assert(is_alike<decltype(&judge_container), decltype(&planted_judge_container)>);
static_assert(is_alike<decltype(&companion_plan), decltype(&planted_companion_plan)>);
static_assert(is_alike<decltype(&parse_event_cursor), decltype(&planted_parse_event_cursor)>);

}  // namespace agbox
