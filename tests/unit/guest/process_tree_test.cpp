// SPDX-License-Identifier: Apache-2.0
#include "guest/process_tree.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

namespace agbox::guest {
namespace {

TEST(ParentInStat, IsBehindANameThatMayHoldAnything) {
  EXPECT_EQ(parent_in_stat("12 (sh) S 7 12 12 0"), 7);
  EXPECT_EQ(parent_in_stat("12 (a) S 1 (b) R 9 12"), 9);
  EXPECT_EQ(parent_in_stat("12 (new\nline) Z 3 1"), 3);
}

TEST(ParentInStat, OfBrokenTextIsNothing) {
  for (const char* text :
       {"", "12", "12 (sh", "12 (sh)", "12 (sh) S", "12 (sh) S x", ")", "))))))"}) {
    EXPECT_EQ(parent_in_stat(text), std::nullopt) << text;
  }
}

TEST(ParentOf, IsOurOwnParentForUs) {
  EXPECT_EQ(parent_of(::getpid()), ::getppid());
  EXPECT_EQ(parent_of(0), std::nullopt);
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

TEST(Descends, EndsInACircle) {
  EXPECT_FALSE(descends(5, 10, [](pid_t pid) { return std::optional(pid == 5 ? 6 : 5); }));
}

}  // namespace
}  // namespace agbox::guest
