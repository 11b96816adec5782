// SPDX-License-Identifier: Apache-2.0
// AGBOX_FLIP is TABLE ROW WRONG: a name, numbers joined by commas, a number. AGBOX_FLIP_LOG is a
// file that gets "TABLE ROW" for each row that is asked for, and "flipped" once the wrong verdict
// was given out. All numbers are places in the enums and variants of the model's headers.
#include "unit/model/flipped_tables.h"
#include "model/reasons.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/sandbox/lifecycle.h"
#include "model/sandbox/restart_plan.h"
#include "model/sandbox/work.h"

namespace agbox {
namespace {

using Decided = Result<std::vector<LifecycleEvent>>;

// For advance().
constexpr int kIgnoreInput = 0;
constexpr int kFailOnInput = 1;
// For decide(), beside the places of the events.
constexpr int kRefuse = -2;
constexpr int kAcceptSilently = -1;

constexpr std::string_view kNoRow = "-";

bool was_flipped = false;

[[noreturn]] void refuse_order(const std::string& why) {
  std::fprintf(stderr, "AGBOX_FLIP: %s\n", why.c_str());
  std::_Exit(3);  // apart from a test that fails
}

struct FlipOrder {
  std::string table;
  std::string row;
  int wrong = 0;
};

const std::optional<FlipOrder>& flip_order() {
  static const std::optional<FlipOrder> order = []() -> std::optional<FlipOrder> {
    const char* text = std::getenv("AGBOX_FLIP");
    if (text == nullptr) return std::nullopt;
    FlipOrder read;
    std::istringstream in(text);
    if (!(in >> read.table >> read.row >> read.wrong)) refuse_order("not TABLE ROW WRONG");
    return read;
  }();
  return order;
}

void note(const std::string& line) {
  static const char* const path = std::getenv("AGBOX_FLIP_LOG");
  static std::set<std::string> noted;
  if (path == nullptr || !noted.insert(line).second) return;
  std::ofstream(path, std::ios::app) << line << '\n';  // at once: the process may not end well
}

// The wrong verdict where this row is to be flipped and it is another one; else nothing.
template <class MakeWrong, class IsSame>
auto flipped(const char* table, const std::string& row, MakeWrong make_wrong, IsSame is_same)
    -> std::optional<decltype(make_wrong(0))> {
  note(std::string(table) + " " + row);
  const auto& order = flip_order();
  if (!order || order->table != table || order->row != row) return std::nullopt;
  auto wrong = make_wrong(order->wrong);
  if (is_same(wrong)) return std::nullopt;
  note("flipped");
  was_flipped = true;
  return wrong;
}

template <class Enum>
std::string place(Enum value) {
  return std::to_string(static_cast<int>(value));
}

// What is seen counts for two states; the rest is no row of its own.
std::string plan_row(Lifecycle state, const SandboxSeen& seen) {
  const std::string row = place(state) + ",";
  if (state != Lifecycle::Ready && state != Lifecycle::Stopped) return row + "seen";
  return row + place(seen.primary) + "," + place(seen.has_network) + "," +
         place(seen.has_guest_directory) + (seen.has_finished ? ",finished" : "");
}

std::string work_row(const WorkState& state, const WorkInput& input) {
  const std::string row = place(state.lifecycle.state) + "," + place(state.work.index()) + "," +
                          place(state.activity.index()) + "," + place(input.index());
  const auto* ended = std::get_if<input::Ended>(&input);
  return ended == nullptr ? row : row + "," + place(ended->end);
}

LifecycleEvent event_at(int index, const std::string& reason, const Failure& failure) {
  switch (index) {
    case 0:
      return event::Accepted{};
    case 1:
      return event::Preparing{reason};
    case 2:
      return event::Ready{};
    case 3:
      return event::Failed{failure};
    case 4:
      return event::StopRequested{reason};
    case 5:
      return event::Stopped{reason};
    case 6:
      return event::DeleteRequested{reason};
    case 7:
      return event::Deleted{reason};
    default:
      refuse_order("there is no such event");
  }
}

const Failure kFlippedFailure{.code = "FLIPPED", .message = "a row of a table is flipped"};

}  // namespace

namespace flip {

bool has_misled() {
  const auto& order = flip_order();
  return was_flipped || (order && order->row == kNoRow);
}

}  // namespace flip

// The linker's names: __wrap_ is what everybody calls, __real_ what they mean.
RestartPlan restart_plan_meant(Lifecycle state,
                               const SandboxSeen& seen) asm("__real_" AGBOX_RESTART_PLAN);
WorkTransition advance_meant(WorkState state, const WorkInput& input,
                             const Surroundings& now) asm("__real_" AGBOX_ADVANCE);
Decided decide_meant(const std::string& sandbox_id, const LifecycleStatus& lifecycle,
                     const LifecycleCommand& command) asm("__real_" AGBOX_DECIDE);
LifecycleStatus apply_meant(LifecycleStatus lifecycle,
                            const LifecycleEvent& event) asm("__real_" AGBOX_APPLY);

RestartPlan restart_plan_called(Lifecycle state,
                                const SandboxSeen& seen) asm("__wrap_" AGBOX_RESTART_PLAN);
WorkTransition advance_called(WorkState state, const WorkInput& input,
                              const Surroundings& now) asm("__wrap_" AGBOX_ADVANCE);
Decided decide_called(const std::string& sandbox_id, const LifecycleStatus& lifecycle,
                      const LifecycleCommand& command) asm("__wrap_" AGBOX_DECIDE);
LifecycleStatus apply_called(LifecycleStatus lifecycle,
                             const LifecycleEvent& event) asm("__wrap_" AGBOX_APPLY);

RestartPlan restart_plan_called(Lifecycle state, const SandboxSeen& seen) {
  RestartPlan right = restart_plan_meant(state, seen);
  const auto wrong = flipped(
      "plan", plan_row(state, seen),
      [](int step) {
        return RestartPlan{.step = static_cast<RestartStep>(step), .failure = kFlippedFailure};
      },
      [&](const RestartPlan& plan) { return plan.step == right.step; });
  return wrong.value_or(std::move(right));
}

Decided decide_called(const std::string& sandbox_id, const LifecycleStatus& lifecycle,
                      const LifecycleCommand& command) {
  Decided right = decide_meant(sandbox_id, lifecycle, command);
  const auto wrong = flipped(
      "decide", std::to_string(command.index()) + "," + place(lifecycle.state),
      [&](int verdict) -> Decided {
        if (verdict == kRefuse) return fail(reason::kSandboxInvalidState, kFlippedFailure.message);
        if (verdict == kAcceptSilently) return std::vector<LifecycleEvent>{};
        return std::vector{event_at(verdict, lifecycle.reason, kFlippedFailure)};
      },
      [&](const Decided& decided) {
        if (!decided || !right) return !decided && !right;
        if (decided->empty() || right->empty()) return decided->empty() && right->empty();
        return decided->front().index() == right->front().index();
      });
  return wrong.value_or(std::move(right));
}

LifecycleStatus apply_called(LifecycleStatus lifecycle, const LifecycleEvent& event) {
  const std::string row = std::to_string(event.index()) + "," + place(lifecycle.state);
  LifecycleStatus right = apply_meant(std::move(lifecycle), event);
  const auto wrong = flipped(
      "apply", row,
      [&](int state) {
        return LifecycleStatus{.state = static_cast<Lifecycle>(state), .reason = right.reason};
      },
      [&](const LifecycleStatus& moved) { return moved.state == right.state; });
  return wrong.value_or(std::move(right));
}

WorkTransition advance_called(WorkState state, const WorkInput& input, const Surroundings& now) {
  const WorkState before = state;
  WorkTransition right = advance_meant(std::move(state), input, now);
  const auto wrong = flipped(
      "work", work_row(before, input),
      [&](int verdict) -> WorkTransition {
        if (verdict == kIgnoreInput) return {.state = before, .step = {}};
        if (verdict != kFailOnInput) refuse_order("there is no such verdict");
        WorkState failed{.lifecycle = {.state = Lifecycle::Failed, .reason = {}},
                         .work = work::Idle{},
                         .activity = before.activity};
        return {.state = std::move(failed),
                .step = {.record = Record{.events = {event::Failed{kFlippedFailure}}}}};
      },
      [&](const WorkTransition& verdict) {
        return verdict.state == right.state && verdict.step == right.step;
      });
  return wrong.value_or(std::move(right));
}

}  // namespace agbox
