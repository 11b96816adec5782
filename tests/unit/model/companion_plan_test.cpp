// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/companion_plan.h"

#include <gtest/gtest.h>

namespace agbox {
namespace {

using Health = CompanionSeen::Health;
using State = CompanionSeen::State;

struct CompanionPlanRow {
  CompanionView view;
  CompanionStep step;
};

CompanionView running(Health health, bool is_proven_healthy = false, bool has_network = true) {
  CompanionView view{.seen = {.state = State::Running}};
  view.seen.health = health;
  view.seen.has_network = has_network;
  view.is_proven_healthy = is_proven_healthy;
  return view;
}

TEST(CompanionPlan, EveryRow) {
  const CompanionPlanRow rows[] = {
      {{.seen = {.state = State::Missing}}, CompanionStep::Lost},
      {{.seen = {.state = State::Missing}, .may_create = true}, CompanionStep::Create},
      {{.seen = {.state = State::Missing}, .is_start_due = true}, CompanionStep::Lost},
      {{.seen = {.state = State::Foreign}, .may_create = true}, CompanionStep::Lost},
      {{.seen = {.state = State::Created}}, CompanionStep::Start},
      {{.seen = {.state = State::Exited}}, CompanionStep::Restart},
      {{.seen = {.state = State::Exited}, .is_start_due = true}, CompanionStep::Start},
      {{.seen = {.state = State::Paused}}, CompanionStep::Wait},
      {running(Health::None), CompanionStep::Ready},
      {running(Health::Healthy), CompanionStep::Ready},
      {running(Health::Starting), CompanionStep::AwaitHealth},
      {running(Health::Starting, /*is_proven_healthy=*/true), CompanionStep::Ready},
      {running(Health::Unhealthy), CompanionStep::Unhealthy},
      {running(Health::Unhealthy, /*is_proven_healthy=*/true), CompanionStep::Unhealthy},
      {running(Health::Healthy, true, /*has_network=*/false), CompanionStep::Reattach},
  };
  for (const auto& [view, step] : rows) {
    EXPECT_EQ(companion_plan(view), step)
        << static_cast<int>(view.seen.state) << " " << static_cast<int>(view.seen.health);
  }
}

}  // namespace
}  // namespace agbox
