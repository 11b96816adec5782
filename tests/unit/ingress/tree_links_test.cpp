// SPDX-License-Identifier: Apache-2.0
#include "ingress/tree_links.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

class TreeLinksTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_ / "p/q/r"); }

  std::optional<std::string> inside(std::string_view directory, const std::string& target) {
    const auto resolved = links().target_inside(directory, target);
    EXPECT_TRUE(resolved.has_value()) << "exhausted";
    return resolved.value_or("exhausted");
  }
  std::optional<std::string> by_text(std::string_view directory, const std::string& target) {
    return target_inside_by_text(root_.string(), directory, target);
  }
  TreeLinks links(std::uint64_t max_lookups = 1000) {
    fd_.reset(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    return {fd_.get(), root_, max_lookups};
  }

  TempDirectory temp_;
  fs::path root_ = temp_.path() / "tree";
  UniqueFd fd_;
};

TEST_F(TreeLinksTest, RelativeTargetsInsideStayAsTheyAre) {
  EXPECT_EQ(inside("", "p/q"), "p/q");
  EXPECT_EQ(inside("p/q", "../../p"), "../../p");
  EXPECT_EQ(inside("p", ".."), "..");  // the root itself
  EXPECT_EQ(inside("p", "nowhere/at/all"), "nowhere/at/all");
  EXPECT_EQ(inside("", "."), ".");
}

TEST_F(TreeLinksTest, TargetsOutsideAreRecognized) {
  EXPECT_EQ(inside("", ".."), std::nullopt);
  EXPECT_EQ(inside("p", "../.."), std::nullopt);
  EXPECT_EQ(inside("p", "../../tree/p"), std::nullopt);  // by way of the outside
  EXPECT_EQ(inside("", "/etc/passwd"), std::nullopt);
  EXPECT_EQ(inside("", "/"), std::nullopt);
  EXPECT_EQ(inside("", temp_.path() / "tree2"), std::nullopt);
}

TEST_F(TreeLinksTest, AbsoluteTargetsInsideBecomeRelative) {
  EXPECT_EQ(inside("", root_ / "p/q"), "p/q");
  EXPECT_EQ(inside("p/q", root_ / "p/q/r"), "../../p/q/r");
  EXPECT_EQ(inside("p", root_), "..");
  EXPECT_EQ(inside("", root_), ".");
  EXPECT_EQ(inside("", root_ / "missing"), "missing");
  EXPECT_EQ(inside("p", root_ / "p//q/."), "../p/q");
  EXPECT_EQ(inside("", root_ / "../tree/p"), std::nullopt);
}

// To recognize it, files outside would have to be inspected.
TEST_F(TreeLinksTest, AnotherPathToTheTreeIsOutside) {
  fs::create_directory_symlink(root_, temp_.path() / "alias");
  EXPECT_EQ(inside("", temp_.path() / "alias/p"), std::nullopt);
}

// Every link is inside if its text alone is considered; together they lead out.
TEST_F(TreeLinksTest, LinksThatLeaveTogetherAreOutside) {
  fs::create_symlink("../../..", root_ / "p/q/r/up");  // the root
  EXPECT_EQ(inside("p/q/r", "../../.."), "../../..");
  EXPECT_EQ(inside("p/q/r", "up/p"), "up/p");
  EXPECT_EQ(inside("p/q/r", "up/../x"), std::nullopt);
  fs::create_symlink(root_ / "p", root_ / "absolute");
  EXPECT_EQ(inside("", "absolute/q"), "absolute/q");
  EXPECT_EQ(inside("", "absolute/../.."), std::nullopt);
}

TEST_F(TreeLinksTest, ALoopLeadsNowhere) {
  fs::create_symlink("b", root_ / "a");
  fs::create_symlink("a", root_ / "b");
  EXPECT_EQ(inside("", "a"), "a");
  EXPECT_EQ(inside("", "a/../../.."), "a/../../..");
}

// Forty links, each of which leads through a path of 800 names to the one before.
void plant_chain(const fs::path& root) {
  std::string detour;
  for (int i = 0; i < 800; ++i) detour += "p/../";
  fs::create_symlink("p", root / "0");
  for (int i = 1; i < 40; ++i) {
    fs::create_symlink(detour + std::to_string(i - 1), root / std::to_string(i));
  }
}

TEST_F(TreeLinksTest, TheEffortIsBounded) {
  plant_chain(root_);
  TreeLinks bounded = links(500);
  EXPECT_FALSE(bounded.target_inside("", "39").has_value());
  EXPECT_LT(bounded.lookups(), 1000U);
  EXPECT_FALSE(bounded.target_inside("", "p").has_value()) << "it is the effort of all together";
  TreeLinks unbounded = links(1'000'000);
  EXPECT_TRUE(unbounded.target_inside("", "39").has_value());
  EXPECT_GT(unbounded.lookups(), 30'000U);
}

TEST_F(TreeLinksTest, LongPathsCountAsMore) {
  std::string deep = "p";
  for (int i = 0; i < 40; ++i) deep += "/" + std::string(50, 'd');
  fs::create_directories(root_ / deep);
  TreeLinks several = links(100'000);
  ASSERT_TRUE(several.target_inside(deep, "x").has_value());
  EXPECT_GT(several.lookups(), 40U * 50 / 20);
}

// A directory that changes places with a link to the outside is not followed.
TEST_F(TreeLinksTest, ARaceLeadsNowhere) {
  fs::create_directories(temp_.path() / "secret");
  fs::create_symlink("/etc", temp_.path() / "secret/name");
  fs::create_directory(root_ / "p/q/name");
  fs::create_symlink(temp_.path() / "secret", root_ / "swapped");
  TreeLinks many = links(1'000'000);
  std::atomic<bool> ends = false;
  std::thread racer([&] {
    while (!ends) {
      ::renameat2(AT_FDCWD, (root_ / "p/q").c_str(), AT_FDCWD, (root_ / "swapped").c_str(),
                  RENAME_EXCHANGE);
    }
  });
  // What is read between `p/q` and its name is that of the directory, or of nothing.
  int outside = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto seen = many.target_inside("p/q", "name");
    if (!seen || !*seen) ++outside;
  }
  ends = true;
  racer.join();
  EXPECT_EQ(outside, 0);
}

// --- by their text alone ---

TEST_F(TreeLinksTest, ATextThatGoesUpAndThenDownIsInside) {
  EXPECT_EQ(by_text("", "p/q"), "p/q");
  EXPECT_EQ(by_text("p/q", "../..//p/./x"), "../..//p/./x");
  EXPECT_EQ(by_text("p", ".."), "..");
  EXPECT_EQ(by_text("", "."), ".");
  EXPECT_EQ(by_text("p", root_ / "p//q/."), "../p/q");
  EXPECT_EQ(by_text("p", root_), "..");
  EXPECT_EQ(by_text("", root_), ".");
}

TEST_F(TreeLinksTest, EveryOtherTextIsOutside) {
  EXPECT_EQ(by_text("", ".."), std::nullopt);
  EXPECT_EQ(by_text("p", "../../tree/p"), std::nullopt);
  EXPECT_EQ(by_text("", "/"), std::nullopt);
  EXPECT_EQ(by_text("", root_.string() + "2"), std::nullopt);
  EXPECT_EQ(by_text("", root_ / "../tree/p"), std::nullopt);
  // If the name is a link, this leads anywhere.
  EXPECT_EQ(by_text("p", "q/../x"), std::nullopt);
  EXPECT_EQ(by_text("p", "../p/.."), std::nullopt);
  EXPECT_EQ(by_text("p", root_ / "p/../x"), std::nullopt);
}

}  // namespace
}  // namespace agbox
