// SPDX-License-Identifier: Apache-2.0
#include "guest/tree_killer.h"

#include <gtest/gtest.h>

#include <chrono>

namespace agbox::guest {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::vector<Process> all_children_of_nobody(const ProcessTable& table) {
  return table.children_of(0);
}

TEST(TreeKillerTest, AFailedWalkIsRepeated) {
  int walks = 0;
  TreeKiller tree_killer([&]() -> std::optional<ProcessTable> {
    if (++walks == 1) return std::nullopt;
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

}  // namespace
}  // namespace agbox::guest
