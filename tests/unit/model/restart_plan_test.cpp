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
    case RestartStep::Finish:
      return 'f';
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

TEST(RestartPlanTest, OneWhoseCommandIsDoneIsStopped) {
  for (const PlanRow& row : plan_table()) {
    SCOPED_TRACE(static_cast<int>(row.state));
    for (const PrimarySeen primary : kPrimaries) {
      const SandboxSeen seen{.primary = primary, .has_finished = true};
      const bool is_done = row.state == Lifecycle::Ready && primary == PrimarySeen::Exited;
      const SandboxSeen without{.primary = primary};
      EXPECT_EQ(letter(restart_plan(row.state, seen)),
                is_done ? 'f' : letter(restart_plan(row.state, without)));
    }
  }
  // A resume could only fail.
  const SandboxSeen finished{.primary = PrimarySeen::Exited, .has_finished = true};
  SandboxSeen cut = finished;
  cut.has_network = false;
  EXPECT_EQ(letter(restart_plan(Lifecycle::Ready, cut)), 'N');
  cut.has_guest_directory = false;
  EXPECT_EQ(letter(restart_plan(Lifecycle::Ready, cut)), 'N');
  SandboxSeen no_directory = finished;
  no_directory.has_guest_directory = false;
  EXPECT_EQ(letter(restart_plan(Lifecycle::Ready, no_directory)), 'G');
}

TEST(RestartPlanTest, AnEndIsReportedByItsCodeIfItHasOne) {
  EXPECT_EQ(exit_text({.how = "it exited with code 0", .exit_code = 0}), "exit code 0");
  EXPECT_EQ(exit_text({.is_out_of_memory = true, .how = "it ran out", .exit_code = 137}),
            "exit code 137: out of memory");
  EXPECT_EQ(exit_text({.how = "the engine took its network away"}),
            "the engine took its network away");
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
