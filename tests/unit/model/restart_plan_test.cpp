// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/restart_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace agbox {
namespace {

using testing::HasSubstr;

constexpr std::array kPrimaries{PrimarySeen::Missing, PrimarySeen::Created,    PrimarySeen::Running,
                                PrimarySeen::Paused,  PrimarySeen::OtherStart, PrimarySeen::Exited,
                                PrimarySeen::Foreign};

// The step as one letter; a failure as one that says which.
char letter(const RestartPlan& plan) {
  switch (plan.step) {
    case RestartStep::Stay:
      return '-';
    case RestartStep::Adopt:
      return 'a';
    case RestartStep::Restart:
      return 'r';
    case RestartStep::Fail:
      break;
  }
  if (plan.failure.code == "CONTAINER_NOT_RUNNING") return 'C';
  if (plan.failure.code == "NETWORK_MISSING") return 'N';
  if (plan.failure.code == "GUEST_UNREACHABLE") return 'G';
  return '!';
}

struct PlanRow {
  Lifecycle state;
  // One letter for each of kPrimaries: all there; no guest directory; no network; neither.
  std::array<std::string, 4> plans;
};

const std::vector<PlanRow>& plan_table() {
  using L = Lifecycle;
  static const std::vector<PlanRow> rows{
      //              M C R P O E F   missing, created, ...
      {L::Creating, {"-------", "-------", "-------", "-------"}},
      {L::Resuming, {"-------", "-------", "-------", "-------"}},
      {L::Ready, {"CraarrC", "CGGGGGC", "CNNNNNC", "CNNNNNC"}},
      {L::Stopping, {"-------", "-------", "-------", "-------"}},
      {L::Stopped, {"C-----C", "C-----C", "CNNNNNC", "CNNNNNC"}},
      {L::Failed, {"-------", "-------", "-------", "-------"}},
      {L::Deleting, {"-------", "-------", "-------", "-------"}},
      {L::Deleted, {"-------", "-------", "-------", "-------"}},
  };
  return rows;
}

TEST(RestartPlanTest, IsThisForEveryPair) {
  for (const PlanRow& row : plan_table()) {
    SCOPED_TRACE(static_cast<int>(row.state));
    for (std::size_t lack = 0; lack < row.plans.size(); ++lack) {
      std::string plans;
      for (const PrimarySeen primary : kPrimaries) {
        const SandboxSeen seen{
            .primary = primary, .has_network = lack < 2, .has_guest_directory = lack % 2 == 0};
        plans += letter(restart_plan(row.state, seen));
      }
      EXPECT_EQ(plans, row.plans.at(lack)) << "lack " << lack;
    }
  }
}

TEST(RestartPlanTest, EveryStateHasARow) {
  for (int state = 0; state <= static_cast<int>(Lifecycle::Deleted); ++state) {
    EXPECT_TRUE(std::ranges::any_of(plan_table(), [state](const PlanRow& row) {
      return row.state == static_cast<Lifecycle>(state);
    })) << state;
  }
}

TEST(RestartPlanTest, AFailureSaysWhatIsWrongAndWhatToDo) {
  const auto message = [&](const SandboxSeen& seen) {
    return restart_plan(Lifecycle::Ready, seen).failure.message;
  };
  EXPECT_THAT(message({.primary = PrimarySeen::Missing}), HasSubstr("it was removed"));
  EXPECT_THAT(message({.primary = PrimarySeen::Foreign}), HasSubstr("not ours"));
  EXPECT_THAT(message({.primary = PrimarySeen::Running, .has_network = false}),
              HasSubstr("network was removed"));
  EXPECT_THAT(message({.primary = PrimarySeen::Running, .has_guest_directory = false}),
              HasSubstr("the directory"));
  for (const PrimarySeen primary : {PrimarySeen::Missing, PrimarySeen::Foreign}) {
    EXPECT_THAT(message({.primary = primary}), HasSubstr("create it again"));
  }
}

}  // namespace
}  // namespace agbox
