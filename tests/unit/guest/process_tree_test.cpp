// SPDX-License-Identifier: Apache-2.0
#include "guest/process_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/unique_fd.h"

namespace agbox::guest {
namespace {

TEST(ParentOf, IsOurOwnParentForUs) {
  EXPECT_EQ(parent_of(::getpid()), ::getppid());
  EXPECT_EQ(parent_of(0), std::nullopt);
}

TEST(ProcessTableTest, ShowsThisProcess) {
  const auto children = ProcessTable::read().value().children_of(::getppid());
  const auto us = std::ranges::find(children, ::getpid(), &Process::pid);
  ASSERT_NE(us, children.end());
  EXPECT_EQ(us->session, ::getsid(0));
  EXPECT_LE(us->start_ticks, ticks_now());
  EXPECT_GT(us->start_ticks + 600 * kTicksPerSecond, ticks_now());
}

TEST(HasMoreProcessesThan, CountsThoseOfProc) {
  EXPECT_TRUE(has_more_processes_than(0));
  EXPECT_TRUE(has_more_processes_than(1)) << "this one, and its parent";
  EXPECT_FALSE(has_more_processes_than(5'000'000)) << "more than pids";
}

TEST(ProcessTableTest, AFailedWalkIsNoEmptyTable) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const auto read_with = [&](rlim_t most_descriptors) {
    const rlimit tight{.rlim_cur = most_descriptors, .rlim_max = limit.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
    const bool has_read = ProcessTable::read().has_value();
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    return has_read;
  };
  const UniqueFd next(::open("/proc", O_PATH | O_CLOEXEC));
  EXPECT_FALSE(read_with(static_cast<rlim_t>(next.get()))) << "/proc cannot be opened";
  EXPECT_FALSE(read_with(static_cast<rlim_t>(next.get()) + 2)) << "what is in it cannot be opened";
  EXPECT_TRUE(read_with(limit.rlim_cur));
}

TEST(ProcessTableTest, AWalkEndsAtItsDeadline) {
  const auto walked = ProcessTable::read(std::chrono::steady_clock::now(), /*few=*/2);
  ASSERT_FALSE(walked.has_value());
  EXPECT_EQ(walked.error(), WalkProblem::TooSlow);
}

TEST(ProcessTableTest, AWalkOfFewProcessesHasNoDeadline) {
  constexpr std::size_t kMoreThanThereAre = 5'000'000;
  const auto walked = ProcessTable::read(std::chrono::steady_clock::now(), kMoreThanThereAre);
  ASSERT_TRUE(walked.has_value()) << "the load of others is no reason to stop a container";
  EXPECT_FALSE(walked->children_of(::getppid()).empty()) << "this process at least";
}

TEST(ProcessTableTest, FindsAllDescendants) {
  const ProcessTable table({{10, 1, 10, 5}, {11, 10, 10, 6}, {12, 11, 12, 7}, {20, 1, 20, 5}});
  const auto tree = table.with_descendants(table.children_of(10));
  EXPECT_EQ(tree, (std::vector<Process>{{11, 10, 10, 6}, {12, 11, 12, 7}}));
  EXPECT_TRUE(table.with_descendants(table.children_of(12)).empty());
}

TEST(ProcessTableTest, IgnoresAChildOlderThanItsParent) {
  const ProcessTable table({{10, 1, 10, 5}, {11, 10, 10, 6}, {12, 11, 12, 3}});
  EXPECT_EQ(table.with_descendants(table.children_of(10)).size(), 1U);
}

TEST(ProcessTableTest, ACycleEnds) {
  const ProcessTable table({{10, 11, 10, 5}, {11, 10, 10, 5}});
  EXPECT_EQ(table.with_descendants(table.children_of(10)).size(), 2U);
}

TEST(Descends, FollowsParentsUpToTheFirstProcess) {
  const std::map<pid_t, pid_t> parents = {{10, 1}, {11, 10}, {12, 11}, {20, 1}, {1, 0}};
  const auto parent = [&](pid_t pid) -> std::optional<pid_t> {
    const auto found = parents.find(pid);
    return found == parents.end() ? std::nullopt : std::optional(found->second);
  };
  EXPECT_TRUE(descends(10, 10, parent));
  EXPECT_TRUE(descends(12, 10, parent));
  EXPECT_FALSE(descends(20, 10, parent));
  EXPECT_FALSE(descends(99, 10, parent));
  EXPECT_FALSE(descends(0, 10, parent));
}

TEST(Descends, EndsInACycle) {
  EXPECT_FALSE(descends(5, 10, [](pid_t pid) { return std::optional(pid == 5 ? 6 : 5); }));
}

}  // namespace
}  // namespace agbox::guest
