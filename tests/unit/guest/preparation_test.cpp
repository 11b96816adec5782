// SPDX-License-Identifier: Apache-2.0
// The preparation in a directory that plays the container's root, for the current user.
#include "guest/preparation.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/unique_fd.h"
#include "base/uuid.h"
#include "guest/image_file.h"

namespace agbox::guest {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

class PreparationTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("agbox-preparation-" + random_uuid());
    fs::create_directories(root_ / "etc");
    fd_.reset(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    welcome_.set_uid(::getuid());
    welcome_.set_gid(::getgid());
  }
  void TearDown() override { fs::remove_all(root_); }

  Preparation run() { return prepare(fd_.get(), welcome_); }
  void write(const std::string& path, const std::string& text, mode_t mode = 0644) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
    ::chmod((root_ / path).c_str(), mode);
  }
  std::string read(const std::string& path) {
    std::ifstream file(root_ / path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  mode_t mode(const std::string& path) {
    struct stat status{};
    EXPECT_EQ(::lstat((root_ / path).c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  }

  fs::path root_;
  UniqueFd fd_;
  v1::Welcome welcome_;
};

TEST_F(PreparationTest, CreatesTheUserAndItsDirectoriesInAnEmptyRoot) {
  const Preparation done = run();
  EXPECT_EQ(done.report.failure(), "");
  EXPECT_THAT(done.report.notes(), IsEmpty());
  EXPECT_THAT(read("etc/passwd"), HasSubstr("agbox:*:" + std::to_string(::getuid()) + ":"));
  EXPECT_TRUE(fs::is_directory(root_ / "home/agbox"));
  EXPECT_TRUE(fs::is_directory(root_ / "workspace"));
  EXPECT_FALSE(fs::exists(root_ / "etc/shadow"));
  EXPECT_FALSE(fs::exists(root_ / "etc/sudoers.d"));
  EXPECT_EQ(done.report.user().home(), "/home/agbox");
}

TEST_F(PreparationTest, WhatRootPutInThePlaceOfTheAccountsIsReplacedAtTheEnd) {
  write("etc/passwd", "root:x:0:0::/root:/bin/sh\n");
  const Preparation done = run();
  const std::string passwd = read("etc/passwd");
  const std::string group = read("etc/group");
  ASSERT_THAT(passwd, HasSubstr("agbox"));
  for (const std::string name : {"passwd", "group"}) fs::remove(root_ / "etc" / name);
  ASSERT_EQ(::mkfifo((root_ / "etc/passwd").c_str(), 0666), 0);
  fs::create_symlink("/tmp", root_ / "etc/group");
  ::chmod((root_ / "etc").c_str(), 0555);
  put_back(fd_.get(), done.kept_accounts);
  ASSERT_TRUE(fs::is_regular_file(fs::symlink_status(root_ / "etc/passwd")));
  ASSERT_TRUE(fs::is_regular_file(fs::symlink_status(root_ / "etc/group")));
  EXPECT_EQ(read("etc/passwd"), passwd);
  EXPECT_EQ(read("etc/group"), group);
}

TEST_F(PreparationTest, AccountsOfTheImageThatAreLinksAndChangedFilesAreLeftAtTheEnd) {
  write("store/group", "root:x:0:\n");
  fs::create_symlink("/store/group", root_ / "etc/group");
  const Preparation done = run();
  EXPECT_FALSE(done.kept_accounts.group.has_value());
  write("etc/passwd", "changed by a user\n");
  put_back(fd_.get(), done.kept_accounts);
  EXPECT_TRUE(fs::is_symlink(root_ / "etc/group"));
  EXPECT_EQ(read("etc/passwd"), "changed by a user\n");
}

TEST_F(PreparationTest, KeepsModesAndLeavesNoTemporaryFile) {
  write("etc/passwd", "root:x:0:0::/root:/bin/sh\n", 0644);
  write("etc/shadow", "root:*:::::::\n", 0640);
  write("etc/group", "root:x:0:\n", 0604);
  write("etc/.agbox-passwd", "of a start that was cut off");
  run();
  EXPECT_EQ(mode("etc/shadow"), 0640U);
  EXPECT_EQ(mode("etc/passwd"), 0644U);
  EXPECT_THAT(read("etc/shadow"), HasSubstr("agbox:*:"));
  EXPECT_FALSE(fs::exists(root_ / "etc/.agbox-passwd"));
}

TEST_F(PreparationTest, WritesNothingTheSecondTime) {
  write("etc/sudoers.d/README", "");
  run();
  const auto before = fs::last_write_time(root_ / "etc/passwd");
  const std::string text = read("etc/passwd");
  struct stat first{};
  ASSERT_EQ(::stat((root_ / "etc/passwd").c_str(), &first), 0);
  run();
  struct stat second{};
  ASSERT_EQ(::stat((root_ / "etc/passwd").c_str(), &second), 0);
  EXPECT_EQ(first.st_ino, second.st_ino);
  EXPECT_EQ(before, fs::last_write_time(root_ / "etc/passwd"));
  EXPECT_EQ(text, read("etc/passwd"));
}

TEST_F(PreparationTest, AllowsSudoIfInstalled) {
  write("etc/sudoers.d/README", "");
  run();
  EXPECT_EQ(read("etc/sudoers.d/runtime-user"), "agbox ALL=(ALL:ALL) NOPASSWD: ALL\n");
  EXPECT_EQ(mode("etc/sudoers.d/runtime-user"), 0440U);
}

TEST_F(PreparationTest, NeverFollowsALinkOfTheImage) {
  write("victim", "untouched", 0600);
  fs::create_symlink("../victim", root_ / "etc/passwd");
  fs::create_symlink("../victim", root_ / "etc/group");
  fs::create_directories(root_ / "elsewhere");
  fs::create_symlink("elsewhere", root_ / "home");
  const Preparation done = run();
  EXPECT_EQ(done.report.failure(), "");
  EXPECT_EQ(read("victim"), "untouched");
  EXPECT_TRUE(fs::is_symlink(root_ / "etc/passwd"));
  EXPECT_FALSE(fs::exists(root_ / "elsewhere/agbox"));
  EXPECT_THAT(done.report.notes(), Contains(HasSubstr("passwd")));
}

TEST_F(PreparationTest, DoesNotWaitForAFifo) {
  ASSERT_EQ(::mkfifo((root_ / "etc/passwd").c_str(), 0644), 0);
  EXPECT_THAT(run().report.notes(), Contains(HasSubstr("not a regular file")));
}

TEST_F(PreparationTest, AnUnknownUserOfTheImageIsAFailure) {
  welcome_.set_image_user("ghost");
  EXPECT_THAT(run().report.failure(), HasSubstr("'ghost'"));
}

TEST_F(PreparationTest, ResolvesTheImagesUserBeforeTheRuntimeUserIsWritten) {
  write("etc/passwd", "node:x:" + std::to_string(::getuid()) + ":7:Node:/home/node:/bin/sh\n");
  welcome_.set_image_user("node");
  const Preparation done = run();
  EXPECT_EQ(done.image_user, (Identity{::getuid(), 7, {}, "/home/node"}));
}

TEST_F(PreparationTest, ReportsMounts) {
  write("data/file", "x");
  fs::create_symlink("data", root_ / "link");
  welcome_.add_mounts()->set_target("/data/file");
  welcome_.add_mounts()->set_target("/link/file");
  welcome_.add_mounts()->set_target("/missing");
  const Preparation done = run();
  struct stat status{};
  ASSERT_EQ(::stat((root_ / "data/file").c_str(), &status), 0);
  ASSERT_EQ(done.report.mounts_size(), 3);
  EXPECT_EQ(done.report.mounts(0).inode(), status.st_ino);
  EXPECT_EQ(done.report.mounts(1).inode(), status.st_ino);  // the engine follows it too
  EXPECT_EQ(done.report.mounts(1).device(), status.st_dev);
  EXPECT_EQ(done.report.mounts(2).failure(), "No such file or directory");
}

TEST_F(PreparationTest, StaysInsideTheRoot) {
  EXPECT_FALSE(open_inside(fd_.get(), "../..", O_PATH));
  EXPECT_FALSE(open_across_mounts(fd_.get(), "/../etc/passwd", O_PATH));
  fs::create_symlink("/etc/hostname", root_ / "out");
  EXPECT_FALSE(open_as_mounted(fd_.get(), "/out", O_PATH));
}

}  // namespace
}  // namespace agbox::guest
