// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/companion_plan.h"

#include "base/check.h"

namespace agbox {
namespace {

using Health = CompanionSeen::Health;
using State = CompanionSeen::State;

CompanionStep plan_of_running(const CompanionView& view) {
  if (!view.seen.has_network) return CompanionStep::Reattach;
  switch (view.seen.health) {
    case Health::None:
    case Health::Healthy:
      return CompanionStep::Ready;
    case Health::Starting:
      return view.is_proven_healthy ? CompanionStep::Ready : CompanionStep::AwaitHealth;
    case Health::Unhealthy:
      return CompanionStep::Unhealthy;
  }
  die("a health that is none");
}

}  // namespace

CompanionStep companion_plan(const CompanionView& view) {
  switch (view.seen.state) {
    case State::Missing:
      return view.may_create ? CompanionStep::Create : CompanionStep::Lost;
    case State::Foreign:
      return CompanionStep::Lost;
    case State::Created:
      return CompanionStep::Start;
    case State::Exited:
      return view.is_start_due ? CompanionStep::Start : CompanionStep::Restart;
    case State::Running:
      return plan_of_running(view);
    case State::Paused:
      return CompanionStep::Wait;
  }
  die("a state that is none");
}

}  // namespace agbox
