// SPDX-License-Identifier: Apache-2.0
#include "ingress/tree_links.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

class TreeLinksTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_ / "p/q/r"); }

  std::optional<std::string> inside(std::string_view directory, const std::string& target) {
    const UniqueFd root(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    return TreeLinks(root.get()).target_inside(directory, target);
  }

  TempDirectory temp_;
  fs::path root_ = temp_.path() / "tree";
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
}

// The path in a link may lead to the tree in another way than the one that it was opened with.
TEST_F(TreeLinksTest, AnotherPathToTheTreeIsTheTree) {
  fs::create_directory_symlink(root_, temp_.path() / "alias");
  EXPECT_EQ(inside("", temp_.path() / "alias/p"), "p");
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

// With its path, files outside are not inspected, so that only this path leads into the tree.
TEST_F(TreeLinksTest, AnAbsoluteTargetMayBeComparedWithThePathAlone) {
  fs::create_directory_symlink(root_, temp_.path() / "alias");
  fs::create_symlink(root_ / "p/q", root_ / "absolute");
  const UniqueFd root(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const TreeLinks links(root.get(), root_);
  const auto leads = [&links](std::string_view directory, const std::string& target) {
    return links.target_inside(directory, target);
  };
  EXPECT_EQ(leads("p", root_ / "p//q/."), "../p/q");
  EXPECT_EQ(leads("p", root_), "..");
  EXPECT_EQ(leads("p", root_ / "absolute/r"), "../absolute/r");
  EXPECT_EQ(leads("", root_ / "absolute/../../../x"), std::nullopt);
  EXPECT_EQ(leads("", root_ / "../tree/p"), std::nullopt);
  EXPECT_EQ(leads("", root_.string() + "2"), std::nullopt);
  EXPECT_EQ(leads("", temp_.path() / "alias/p"), std::nullopt);
  EXPECT_EQ(leads("", "/"), std::nullopt);
}

}  // namespace
}  // namespace agbox
