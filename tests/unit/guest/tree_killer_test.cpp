// SPDX-License-Identifier: Apache-2.0
#include "guest/tree_killer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <string>

namespace agbox::guest {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::ElementsAre;
using testing::IsEmpty;
using Walked = std::expected<ProcessTable, WalkProblem>;

std::vector<Process> all_children_of_nobody(const ProcessTable& table) {
  return table.children_of(0);
}

TEST(TreeKillerTest, AFailedWalkIsRepeated) {
  int walks = 0;
  TreeKiller tree_killer({}, [&](Moment) -> Walked {
    if (++walks == 1) return std::unexpected(WalkProblem::Failed);
    return ProcessTable({});
  });
  bool none_left = false;
  int terminations = 0;
  const auto began = steady_clock::now();
  tree_killer.kill("one", all_children_of_nobody, began, [&] { none_left = true; });
  tree_killer.terminate("two", [&](const ProcessTable& table) {
    ++terminations;
    return all_children_of_nobody(table);
  });
  tree_killer.work();
  EXPECT_EQ(walks, 1);
  EXPECT_FALSE(none_left);
  EXPECT_TRUE(tree_killer.has("one"));
  EXPECT_EQ(terminations, 0);

  Watches watches;
  tree_killer.collect(watches);
  ASSERT_TRUE(watches.wake_at.has_value());
  EXPECT_GT(*watches.wake_at, began + milliseconds(100)) << "the loop does not spin until then";
  wait_and_serve(watches);
  tree_killer.work();
  EXPECT_EQ(walks, 2);
  EXPECT_TRUE(none_left);
  EXPECT_EQ(terminations, 1);
}

// A child that does nothing, in place of a process of the sandbox.
class Victim {
 public:
  Victim() : pid_(::fork()) {
    while (pid_ == 0) ::pause();
  }
  ~Victim() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  Process process() const { return {pid_, 1, pid_, 1}; }
  int ending_signal() const {  // waits for it
    siginfo_t end{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOWAIT);
    return end.si_code == CLD_KILLED ? end.si_status : 0;
  }
  // SIGCONT has revoked a SIGSTOP by the time that kill() returns, whether it had come into effect.
  bool is_stopped() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    return text.contains(") T ");
  }

 private:
  pid_t pid_;
};

// The container's processes, and what the killer does to all of them at once.
struct Container {
  Walked walk(Moment deadline) {
    deadlines.push_back(deadline);
    if (deadline != Moment::max() && is_starved) return std::unexpected(WalkProblem::TooSlow);
    std::vector<Process> processes{{1, 0, 1, 0}};
    for (const Victim& victim : victims) processes.push_back(victim.process());
    return ProcessTable(std::move(processes));
  }
  void signal(int number) {
    sent_to_all.push_back(number);
    for (const Victim& victim : victims) ::kill(victim.process().pid, number);
  }
  TreeKiller killer() {
    return TreeKiller([this](int number) { signal(number); },
                      [this](Moment deadline) { return walk(deadline); },
                      [this] { return is_crowded; });
  }

  std::array<Victim, 2> victims;
  bool is_starved = true;
  bool is_crowded = false;
  std::vector<Moment> deadlines;
  std::vector<int> sent_to_all;
};

TreeKiller::Members only(const Victim& victim) {
  return [process = victim.process()](const ProcessTable&) { return std::vector{process}; };
}

TEST(TreeKillerTest, AStarvedWalkIsRepeatedAtAStandstill) {
  Container container;
  TreeKiller killer = container.killer();
  killer.kill("one", only(container.victims[0]), steady_clock::now());
  killer.work();
  EXPECT_THAT(container.sent_to_all, ElementsAre(SIGSTOP, SIGCONT));
  EXPECT_EQ(container.deadlines.size(), 3U) << "too slow; finds it; finds nothing new";
  EXPECT_EQ(container.victims[0].ending_signal(), SIGKILL);
  EXPECT_TRUE(killer.is_killing("one"));
  EXPECT_FALSE(container.victims[1].is_stopped());
}

TEST(TreeKillerTest, InACrowdTheFirstWalkIsAtAStandstill) {
  Container container;
  container.is_crowded = true;
  TreeKiller killer = container.killer();
  killer.kill("one", only(container.victims[0]), steady_clock::now());
  killer.work();
  EXPECT_THAT(container.sent_to_all, ElementsAre(SIGSTOP, SIGCONT));
  EXPECT_THAT(container.deadlines, testing::Each(Moment::max()));
  EXPECT_EQ(container.victims[0].ending_signal(), SIGKILL);
}

TEST(TreeKillerTest, ATreeThatIsACrowdHasNoGracePeriod) {
  Container container;
  container.is_crowded = true;
  TreeKiller killer = container.killer();
  const auto much_later = steady_clock::now() + std::chrono::hours(1);
  killer.kill("few", only(container.victims[1]), much_later);
  killer.kill(
      "crowd",
      [&](const ProcessTable&) {
        std::vector<Process> crowd(300, container.victims[0].process());
        for (std::size_t i = 0; i < crowd.size(); ++i) crowd[i].start_ticks = i;
        return crowd;
      },
      much_later);
  Watches watches;
  killer.collect(watches);
  EXPECT_LE(watches.wake_at, steady_clock::now());
  killer.work();
  EXPECT_EQ(container.victims[0].ending_signal(), SIGKILL);
  EXPECT_TRUE(killer.is_killing("crowd"));
  EXPECT_FALSE(killer.is_killing("few"));
  EXPECT_FALSE(container.victims[1].is_stopped());
}

TEST(TreeKillerTest, AStarvedSigtermStopsNothingForLong) {
  Container container;
  TreeKiller killer = container.killer();
  killer.terminate("one", only(container.victims[0]));
  killer.work();
  EXPECT_THAT(container.sent_to_all, ElementsAre(SIGSTOP, SIGCONT));
  EXPECT_EQ(container.victims[0].ending_signal(), SIGTERM);
  EXPECT_FALSE(container.victims[1].is_stopped());
}

TEST(TreeKillerTest, AStandstillWhoseWalkFailsEndsToo) {
  std::vector<int> sent_to_all;
  TreeKiller killer([&](int number) { sent_to_all.push_back(number); },
                    [&](Moment deadline) -> Walked {
                      return std::unexpected(deadline == Moment::max() ? WalkProblem::Failed
                                                                       : WalkProblem::TooSlow);
                    },
                    [] { return false; });
  killer.terminate("one", all_children_of_nobody);
  killer.work();
  EXPECT_THAT(sent_to_all, ElementsAre(SIGSTOP, SIGCONT));
  killer.work();
  EXPECT_THAT(sent_to_all, testing::SizeIs(2)) << "not before the time of the next walk";
}

TEST(TreeKillerTest, ATreeThatKeepsGrowingIsKilledAtAStandstill) {
  Container container;
  container.is_starved = false;
  TreeKiller killer = container.killer();
  std::uint64_t start = 0;
  killer.kill(
      "grows",
      [&](const ProcessTable&) {
        Process process = container.victims[0].process();
        process.start_ticks = ++start;  // looks like another process at every walk
        return std::vector{process};
      },
      steady_clock::now());
  for (int walk = 0; walk < 100 && container.sent_to_all.empty(); ++walk) killer.work();
  EXPECT_THAT(container.sent_to_all, ElementsAre(SIGSTOP, SIGCONT));
  EXPECT_EQ(container.victims[0].ending_signal(), SIGKILL);
}

TEST(TreeKillerTest, AnOrdinaryTreeIsKilledWhileTheOthersRun) {
  Container container;
  container.is_starved = false;
  TreeKiller killer = container.killer();
  killer.kill("one", only(container.victims[0]), steady_clock::now());
  killer.work();
  killer.work();
  EXPECT_EQ(container.victims[0].ending_signal(), SIGKILL);
  EXPECT_THAT(container.sent_to_all, IsEmpty());
}

}  // namespace
}  // namespace agbox::guest
