// SPDX-License-Identifier: Apache-2.0
// Trees of a record: from tar streams, which may be hostile, to patches and back into a directory.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/tar/tar_writer.h"
#include "cli/workspace/changes.h"
#include "cli/workspace/record.h"
#include "cli/workspace/tree_import.h"
#include "unit/sdk/scripted_daemon.h"

namespace agbox::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

struct Entry {
  std::string path;
  std::string content = {};
  std::string link = {};
  std::uint32_t mode = 0644;
};

std::string tar_of(const std::vector<Entry>& entries) {
  std::string out;
  for (const Entry& entry : entries) {
    const bool is_link = !entry.link.empty();
    TarEntry header;
    header.kind = is_link ? TarEntry::Kind::Symlink : TarEntry::Kind::File;
    header.path = entry.path;
    header.target = entry.link;
    header.mode = entry.mode;
    header.size = is_link ? 0 : entry.content.size();
    out += tar_header(header);
    if (is_link) continue;
    out += entry.content;
    out += tar_padding(entry.content.size());
  }
  return out.append(tar_end());
}

TarReader::Source source_of(std::string_view& rest) {
  return [&rest](std::span<char> into) {
    const std::size_t size = std::min(into.size(), rest.size());
    std::ranges::copy(rest.substr(0, size), into.begin());
    rest.remove_prefix(size);
    return size;
  };
}

class WorkspaceTree : public testing::Test {
 protected:
  WorkspaceTree() {
    ::setenv("XDG_STATE_HOME", (directory_.path() / "state").c_str(), 1);
    fs::create_directory(workspace());
    auto made = WorkspaceRecord::create("box-1", workspace(), "test");
    EXPECT_TRUE(made) << made.error().message();
    if (made) record_ = *made;
  }
  ~WorkspaceTree() override { ::unsetenv("XDG_STATE_HOME"); }

  fs::path workspace() const { return directory_.path() / "workspace"; }
  Result<ImportedTree> import(const char* reference, const std::vector<Entry>& entries,
                              TreeLimits limits = {.entries = 100, .bytes = 1 << 20}) {
    const std::string tar = tar_of(entries);
    std::string_view rest = tar;
    return import_tree(record_->store(), {.reference = reference, .limits = limits},
                       source_of(rest));
  }
  void expect_import(const char* reference, const std::vector<Entry>& entries) {
    const auto tree = import(reference, entries);
    EXPECT_TRUE(tree) << tree.error().message();
  }
  WorkspaceChanges changes() const { return {*record_, kBaseTree, kSavedTree}; }
  std::vector<std::string> changed() const {
    std::vector<std::string> out;
    for (const ChangedFile& file : changes().files().value_or(std::vector<ChangedFile>())) {
      out.push_back(file.path);
    }
    return out;
  }
  void write(const std::string& path, const std::string& content) const {
    fs::create_directories((workspace() / path).parent_path());
    std::ofstream(workspace() / path, std::ios::binary) << content;
  }
  std::string read(const std::string& path) const {
    std::ostringstream out;
    out << std::ifstream(workspace() / path, std::ios::binary).rdbuf();
    return out.str();
  }

  const test::ShortDirectory directory_;
  std::optional<WorkspaceRecord> record_;
};

TEST_F(WorkspaceTree, ShowsEveryKindOfChange) {
  expect_import(kBaseTree, {{"a", "1\n"}, {"gone", "x"}, {"run", "x"}, {"same", "x"}});
  expect_import(kSavedTree, {{"a", "2\n"},
                             {"same", "x"},
                             {.path = "run", .content = "x", .mode = 0755},
                             {.path = "link", .link = "a"},
                             {"new", "n\n"}});
  const auto files = changes().files();
  ASSERT_TRUE(files) << files.error().message();
  std::vector<std::string> lines;
  for (const ChangedFile& file : *files) {
    lines.push_back(std::string(1, file.status) + " " + file.path + " " +
                    std::to_string(file.added) + " " + std::to_string(file.deleted) + " " +
                    file.link_target);
  }
  EXPECT_THAT(lines, UnorderedElementsAre("M a 1 1 ", "D gone 0 1 ", "A link 1 0 a", "A new 1 0 ",
                                          "M run 0 0 "));
  EXPECT_EQ(changes().summary(), "5 files changed, 3 insertions(+), 2 deletions(-)");
}

TEST_F(WorkspaceTree, HasNoDirectoryOfGitAndNoPathThatLeadsOut) {
  expect_import(kBaseTree, {});
  expect_import(kSavedTree, {{"./a", "x"},
                             {".git/config", "x"},
                             {"sub/.GIT/hooks/post-checkout", "x"},
                             {"sub/.git", "gitdir: /"},
                             {".gitignore", "x"},
                             {"/absolute", "x"},
                             {"new\nline \x1b\"\\", "x"}});
  EXPECT_THAT(changed(), UnorderedElementsAre("a", ".gitignore", "absolute", "new\nline \x1b\"\\"));
  const auto refused = import(kSavedTree, {{"a/../../b", "x"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "the sandbox sent a path with \"..\"");
  EXPECT_THAT(changed(), testing::Contains("a")) << "the last tree stays";
}

TEST_F(WorkspaceTree, IsBounded) {
  EXPECT_THAT(
      import(kBaseTree, {{"a", "x"}, {"b", "x"}}, {.entries = 1, .bytes = 9}).error().message(),
      "there are more than 1 files");
  EXPECT_THAT(
      import(kBaseTree, {{"a", "0123456789"}}, {.entries = 9, .bytes = 9}).error().message(),
      HasSubstr("of files, at a"));
  EXPECT_EQ(record_->store().object(kBaseTree), "");
}

TEST_F(WorkspaceTree, AStreamThatBreaksOffChangesNothing) {
  const std::string tar = tar_of({{"a", "x"}, {"b", "x"}});
  std::string_view rest = std::string_view(tar).substr(0, 1500);
  EXPECT_FALSE(import_tree(record_->store(), {.reference = kBaseTree}, source_of(rest)));
  EXPECT_EQ(record_->store().object(kBaseTree), "");
}

TEST_F(WorkspaceTree, HolesOfSparseFilesAreZeros) {
  TarEntry sparse;
  sparse.path = "s";
  sparse.mode = 0644;
  sparse.size = 10;
  sparse.is_sparse = true;
  sparse.extents = {{.offset = 3, .length = 2}};
  std::string tar = tar_header(sparse) + "xy";
  tar.append(tar_padding(sparse.stored_bytes())).append(tar_end());
  std::string_view rest = tar;
  ASSERT_TRUE(import_tree(record_->store(), {.reference = kSavedTree}, source_of(rest)));
  EXPECT_EQ(record_->store().run({"cat-file", "blob", std::string(kSavedTree) + ":s"}),
            std::string("\0\0\0xy\0\0\0\0\0", 10));
}

TEST_F(WorkspaceTree, LeavesPathsOutOfACommit) {
  expect_import(kBaseTree, {});
  expect_import("refs/agbox/new", {{"a", "x"}, {"b c", "x"}});
  ASSERT_TRUE(commit_without(record_->store(), "refs/agbox/new", {"b c"}, kSavedTree));
  EXPECT_THAT(changed(), ElementsAre("a"));
}

TEST_F(WorkspaceTree, IsAppliedAsAWholeOrNotAtAll) {
  write("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  write("b", "old\n");
  expect_import(kBaseTree, {{"a", read("a")}, {"b", read("b")}});
  expect_import(kSavedTree, {{"a", "one\n2\n3\n4\n5\n6\n7\n8\n9\n"}, {"b", "new\n"}, {"c", "c\n"}});
  write("b", "other\n");
  const auto refused = changes().apply(workspace());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(),
              HasSubstr("none of them was applied:\n  b: patch does not apply"));
  EXPECT_EQ(read("a").front(), '1');
  EXPECT_FALSE(fs::exists(workspace() / "c"));
  write("b", "old\n");
  write("a", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
  EXPECT_TRUE(changes().apply(workspace()));
  EXPECT_EQ(read("a"), "one\n2\n3\n4\n5\n6\n7\n8\nnine\n") << "both changes";
  EXPECT_EQ(read("b") + read("c"), "new\nc\n");
}

TEST_F(WorkspaceTree, NoAttributeOfTheWorkspaceChangesAFile) {
  const std::string attributes =
      "* text eol=crlf ident working-tree-encoding=UTF-16 filter=x diff=x\n";
  write("a", "$Id$ one\r\n");
  write(".gitattributes", attributes);
  expect_import(kBaseTree, {{"a", read("a")}, {".gitattributes", attributes}});
  expect_import(kSavedTree,
                {{"a", "$Id$ two\r\n"}, {"b", "$Id$\n"}, {".gitattributes", attributes}});
  const auto applied = changes().apply(workspace());
  ASSERT_TRUE(applied) << applied.error().message();
  EXPECT_EQ(read("a"), "$Id$ two\r\n");
  EXPECT_EQ(read("b"), "$Id$\n");
}

TEST_F(WorkspaceTree, NeverGoesThroughALinkOrIntoGit) {
  const fs::path outside = directory_.path() / "outside";
  fs::create_directory(outside);
  fs::create_directory_symlink(outside, workspace() / "dir");
  expect_import(kBaseTree, {});
  expect_import(kSavedTree, {{"dir/file", "x\n"}});
  EXPECT_THAT(changes().apply(workspace()).error().message(), HasSubstr("dir/file"));
  EXPECT_TRUE(fs::is_empty(outside));
  for (const char* const path : {"git~1/config", ".git /config", ".g\u200cit/config"}) {
    expect_import(kSavedTree, {{path, "x\n"}});
    EXPECT_THAT(changes().apply(workspace()).error().message(), HasSubstr("invalid path")) << path;
  }
}

TEST_F(WorkspaceTree, WithoutGitItKnowsWhatHasChangedSince) {
  write("a", "1\n");
  expect_import(kBaseTree, {{"a", "1\n"}, {.path = "link", .link = "a"}, {"other", "x"}});
  expect_import(kSavedTree, {{"a", "2\n"}, {.path = "link", .link = "b"}, {"other", "x"}});
  fs::create_symlink("a", workspace() / "link");
  EXPECT_EQ(changes().uncommitted(), "");
  fs::remove(workspace() / "link");
  fs::create_symlink("c", workspace() / "link");
  write("a", "3\n");
  EXPECT_EQ(changes().uncommitted(),
            "in " + workspace().string() + " has changed since the session began:\n  a\n  link");
}

TEST_F(WorkspaceTree, KnowsRepositoriesWithoutADirectoryOfGit) {
  expect_import(kBaseTree, {{"half/HEAD", "x"}, {"half/refs/x", "x"}, {"refs/x", "x"}});
  expect_import(kSavedTree,
                {{"half/HEAD", "x"}, {"half/refs/x", "x"}, {"refs/x", "x"}, {"HEAD", "x"}});
  EXPECT_THAT(changes().hidden_repositories().value(), IsEmpty());
  expect_import(kSavedTree, {{"half/HEAD", "x"},
                             {"half/refs/x", "x"},
                             {.path = "half/objects", .link = "/"},
                             {"refs/x", "x"},
                             {"a/b/HEAD", "ref: refs/heads/x"},
                             {"a/b/objects/x", "x"},
                             {"a/b/refs/x", "x"},
                             {"a/b/config", "[core]"}});
  EXPECT_THAT(changes().hidden_repositories().value(), ElementsAre("a/b/", "half/"));
}

// Its objects, references and configuration are in another directory then.
TEST_F(WorkspaceTree, KnowsRepositoriesThatNameACommonDirectory) {
  expect_import(kBaseTree, {});
  expect_import(kSavedTree, {{"docs/HEAD", "ref: refs/heads/x"},
                             {"docs/commondir", "../c"},
                             {"c/objects/k", "x"},
                             {"c/refs/k", "x"}});
  EXPECT_THAT(changes().hidden_repositories().value(), ElementsAre("docs/"));
}

TEST_F(WorkspaceTree, KnowsRepositoriesOfWhichOnlyTheConfigurationChanged) {
  expect_import(kBaseTree,
                {{"x/HEAD", "x"}, {"x/objects/x", "x"}, {"x/refs/x", "x"}, {"x/config", "a"}});
  expect_import(kSavedTree,
                {{"x/HEAD", "x"}, {"x/objects/x", "x"}, {"x/refs/x", "x"}, {"x/config", "b"}});
  EXPECT_THAT(changes().hidden_repositories().value(), ElementsAre("x/"));
}

TEST_F(WorkspaceTree, KnowsRepositoriesThatOnlyThisMachineHasWhole) {
  fs::create_directories(workspace() / "x/refs");  // empty, as after git clone --bare
  expect_import(kBaseTree, {{"x/HEAD", "x"}, {"x/objects/x", "x"}});
  expect_import(kSavedTree, {{"x/HEAD", "x"}, {"x/objects/x", "x"}, {"x/deep/file", "x"}});
  EXPECT_THAT(changes().hidden_repositories().value(), ElementsAre("x/"));
}

TEST_F(WorkspaceTree, RecordsAreFoundByTheBeginningOfTheirId) {
  ASSERT_TRUE(WorkspaceRecord::create("box-2", workspace(), "other"));
  EXPECT_EQ(WorkspaceRecord::find("box-1")->agent(), "test");
  EXPECT_EQ(WorkspaceRecord::find("box-2")->workspace(), workspace());
  EXPECT_THAT(WorkspaceRecord::find("box").error().message(), HasSubstr("2 sandbox IDs"));
  EXPECT_FALSE(WorkspaceRecord::create("../box", workspace(), "x"));
  record_->remove();
  EXPECT_EQ(WorkspaceRecord::find("box")->sandbox_id(), "box-2");
  EXPECT_EQ(fs::status(directory_.path() / "state/agents-sandbox/workspaces/box-2").permissions(),
            fs::perms::owner_all);
}

}  // namespace
}  // namespace agbox::cli
