// SPDX-License-Identifier: Apache-2.0
#include "cli/workspace/workspace_flag.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "cli/workspace/changes.h"
#include "cli/workspace/colored_patch.h"
#include "cli/workspace/record.h"
#include "cli/workspace/tree_import.h"
#include "unit/sdk/scripted_daemon.h"

namespace agbox::cli {
namespace {

class WorkspaceFlag : public testing::Test {
 protected:
  WorkspaceFlag() { std::filesystem::current_path(directory_.path()); }
  ~WorkspaceFlag() override { std::filesystem::current_path(former_); }

  const std::filesystem::path former_ = std::filesystem::current_path();
  const test::ShortDirectory directory_;
  const std::filesystem::path here_ = std::filesystem::canonical(directory_.path());
};

TEST_F(WorkspaceFlag, AModeIsAboutTheCurrentDirectory) {
  for (const WorkspaceMode mode :
       {WorkspaceMode::Copy, WorkspaceMode::Mount, WorkspaceMode::MountReadOnly}) {
    const auto workspace = parse_workspace_flag(workspace_mode_text(mode));
    ASSERT_TRUE(workspace) << workspace.error();
    EXPECT_EQ(workspace->mode, mode);
    EXPECT_EQ(workspace->directory, here_);
  }
  EXPECT_EQ(parse_workspace_flag("none")->mode, WorkspaceMode::None);
}

TEST_F(WorkspaceFlag, ADirectoryIsCopiedUnlessItsModeSaysOtherwise) {
  std::filesystem::create_directory("a:b");
  std::filesystem::create_directory("copy");
  std::filesystem::create_directory_symlink("a:b", "link");
  EXPECT_EQ(parse_workspace_flag("a:b")->mode, WorkspaceMode::Copy);
  EXPECT_EQ(parse_workspace_flag("a:b")->directory, here_ / "a:b");
  EXPECT_EQ(parse_workspace_flag("a:b:mount")->mode, WorkspaceMode::Mount);
  EXPECT_EQ(parse_workspace_flag("a:b:mount:ro")->mode, WorkspaceMode::MountReadOnly);
  EXPECT_EQ(parse_workspace_flag("link:copy")->directory, here_ / "a:b") << "without links";
  EXPECT_EQ(parse_workspace_flag("./copy")->directory, here_ / "copy");
}

TEST_F(WorkspaceFlag, RefusesWhatIsNoDirectory) {
  EXPECT_EQ(parse_workspace_flag("").error(), "--workspace must not be empty");
  EXPECT_EQ(parse_workspace_flag("nope").error(),
            "--workspace path \"nope\": No such file or directory");
  EXPECT_EQ(parse_workspace_flag("/dev/null").error(),
            "--workspace path \"/dev/null\": Not a directory");
}

TEST(AddWorkspace, ComesFirst) {
  v1::CreateSpec spec;
  spec.add_copies()->set_source("/other");
  add_workspace(spec, {.mode = WorkspaceMode::Copy, .directory = "/project"});
  ASSERT_EQ(spec.copies_size(), 2);
  EXPECT_EQ(spec.copies(0).source(), "/project");
  EXPECT_EQ(spec.copies(0).target(), "/workspace");
  add_workspace(spec, {});
  EXPECT_EQ(spec.copies_size() + spec.mounts_size(), 2);
}

TEST(PathSet, HasWhatIsBelowItsDirectories) {
  using namespace std::string_view_literals;
  const PathSet paths("build/\0a/file\0a/b/\0"sv);
  for (const char* const path : {"build", "build/x", "build/x/y", "a/file", "a/b", "a/b/c"}) {
    EXPECT_TRUE(paths.contains(path)) << path;
  }
  for (const char* const path : {"builds", "a", "a/file/x", "a/bc", "x/build"}) {
    EXPECT_FALSE(paths.contains(path)) << path;
  }
  EXPECT_FALSE(PathSet().contains("a"));
}

TEST(LeadsOut, KnowsWhereALinkLeads) {
  EXPECT_TRUE(leads_out("a", "/etc"));
  EXPECT_TRUE(leads_out("a", ".."));
  EXPECT_TRUE(leads_out("a/b", "../../x"));
  EXPECT_TRUE(leads_out("a/b", "../../a/b"));
  EXPECT_TRUE(leads_out("a/b", "x/../../.."));
  EXPECT_FALSE(leads_out("a/b", "../x"));
  EXPECT_FALSE(leads_out("a", "b/../c"));
  EXPECT_FALSE(leads_out("a", "./b"));
}

TEST(QuotedPath, IsAsFastImportReadsIt) {
  EXPECT_EQ(quoted_path("a b"), "\"a b\"");
  EXPECT_EQ(quoted_path("a\"b\\c\nd\x1b"), "\"a\\\"b\\\\c\\012d\\033\"");
  EXPECT_EQ(quoted_path("\xff"), "\"\xff\"");
}

TEST(ColoredPatch, IsColoredAndHasNoControlCharactersOfItsFiles) {
  const std::string patch =
      "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new \x1b[2J\n same\n"
      "diff --git a/y b/y\n+++ b/y\n";
  EXPECT_EQ(colored_patch(patch, false),
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new \\x1b[2J\n same\n"
            "diff --git a/y b/y\n+++ b/y\n");
  EXPECT_EQ(colored_patch(patch, true),
            "\x1b[1mdiff --git a/x b/x\x1b[m\n\x1b[1m--- a/x\x1b[m\n\x1b[1m+++ b/x\x1b[m\n"
            "\x1b[36m@@ -1 +1 @@\x1b[m\n\x1b[31m-old\x1b[m\n\x1b[32m+new \\x1b[2J\x1b[m\n same\n"
            "\x1b[1mdiff --git a/y b/y\x1b[m\n\x1b[1m+++ b/y\x1b[m\n");
}

}  // namespace
}  // namespace agbox::cli
