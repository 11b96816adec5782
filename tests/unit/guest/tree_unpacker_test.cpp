// SPDX-License-Identifier: Apache-2.0
#include "guest/tree_unpacker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "base/tar/tar_writer.h"
#include "base/unique_fd.h"
#include "unit/temp_directory.h"

namespace agbox::guest {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct stat status_of(const fs::path& path) {
  struct stat status{};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status;
}

class TreeUnpackerTest : public testing::Test {
 protected:
  void SetUp() override {
    umask_ = ::umask(0);
    fs::create_directory(root_);
  }
  void TearDown() override { ::umask(umask_); }

  void add(TarEntry entry, std::string_view content = {}) {
    if (!entry.is_sparse) entry.size = content.size();
    stream_ += tar_header(entry);
    stream_ += content;
    stream_ += tar_padding(content.size());
  }
  void add_file(const std::string& path, std::string_view content, std::uint32_t mode = 0644) {
    add({.path = path, .target = "", .mode = mode, .mtime_seconds = 1000, .mtime_nanoseconds = 7},
        content);
  }
  void add_directory(const std::string& path, std::uint32_t mode = 0755) {
    add({.kind = TarEntry::Kind::Directory,
         .path = path,
         .target = "",
         .mode = mode,
         .mtime_seconds = 2000});
  }
  void add_link(const std::string& path, const std::string& target) {
    add({.kind = TarEntry::Kind::Symlink, .path = path, .target = target, .mode = 0777});
  }

  // Empty, or what went wrong. `stream_` is used up.
  std::string unpack(const std::string& target, bool is_single_file = false) {
    const UniqueFd root(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const UnpackOrder order{.uid = ::geteuid(),
                            .gid = ::getegid(),
                            .target = target,
                            .is_single_file = is_single_file,
                            .is_outside_mounts = is_outside_mounts_};
    stream_ += tar_end();
    std::size_t at = 0;
    const auto unpacked = unpack_tree(root.get(), order, [&](std::span<char> buffer) {
      const std::size_t size = std::min(buffer.size(), stream_.size() - at);
      std::memcpy(buffer.data(), stream_.data() + at, size);
      at += size;
      return std::expected<std::size_t, int>(size);
    });
    stream_.clear();
    if (!unpacked) return unpacked.error().message();
    unpacked_ = *unpacked;
    return "";
  }

  TempDirectory temp_;
  fs::path root_ = temp_.path() / "root";
  std::string stream_;
  Unpacked unpacked_;
  bool is_outside_mounts_ = false;
  mode_t umask_ = 0;
};

TEST_F(TreeUnpackerTest, ATreeIsUnpackedWithModesAndTimes) {
  add_directory("d", 0500);
  add_file("d/a", "hello", 06751);
  add_link("d/l", "../x");
  add_file("x", "");
  ASSERT_EQ(unpack("/workspace/project"), "");
  const fs::path at = root_ / "workspace/project";
  EXPECT_EQ(text_of(at / "d/a"), "hello");
  EXPECT_EQ(status_of(at / "d/a").st_mode & 07777, 0751U);  // without setuid and setgid
  EXPECT_EQ(status_of(at / "d/a").st_mtim.tv_sec, 1000);
  EXPECT_EQ(status_of(at / "d/a").st_mtim.tv_nsec, 7);
  EXPECT_EQ(status_of(at / "d").st_mode & 07777, 0500U);
  EXPECT_EQ(status_of(at / "d").st_mtim.tv_sec, 2000);  // although a file was created in it
  EXPECT_EQ(fs::read_symlink(at / "d/l"), "../x");
  EXPECT_EQ(status_of(root_ / "workspace").st_mode & 07777, 0755U);
  EXPECT_EQ(unpacked_.entries, 4U);
  EXPECT_EQ(unpacked_.bytes, 5U);
}

TEST_F(TreeUnpackerTest, DirectoriesWithoutAnEntryAreCreated) {
  add_file("./a/b/c", "x");
  add_file("a/d", "y");
  ASSERT_EQ(unpack("/t"), "");
  EXPECT_EQ(text_of(root_ / "t/a/b/c"), "x");
  EXPECT_EQ(text_of(root_ / "t/a/d"), "y");
}

TEST_F(TreeUnpackerTest, WhatTheImageHasIsReplacedOrMerged) {
  fs::create_directories(root_ / "t/d");
  std::ofstream(root_ / "t/d/old") << "old";
  std::ofstream(root_ / "t/d/kept") << "kept";
  fs::create_symlink("/etc/passwd", root_ / "t/d/link");
  add_directory("d", 0711);
  add_file("d/old", "new");
  add_file("d/link", "no link any more");
  ASSERT_EQ(unpack("/t"), "");
  EXPECT_EQ(text_of(root_ / "t/d/old"), "new");
  EXPECT_EQ(text_of(root_ / "t/d/kept"), "kept");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(root_ / "t/d/link")));
  EXPECT_EQ(status_of(root_ / "t/d").st_mode & 07777, 0711U);
}

TEST_F(TreeUnpackerTest, TargetsThatTheImageMakesImpossibleAreNamed) {
  std::ofstream(root_ / "file") << "";
  fs::create_directories(root_ / "t/dir");
  std::ofstream(root_ / "t/file") << "";
  fs::create_symlink("dir", root_ / "t/link");
  fs::create_symlink("/missing", root_ / "dangling");

  EXPECT_TRUE(unpack("/file/below").starts_with("/file/below: is not a directory in the image"));
  EXPECT_TRUE(unpack("/dangling").starts_with("/dangling: is a symbolic link to nothing"));
  add_directory("file");
  EXPECT_EQ(unpack("/t"), "/t/file: is a directory in the copy, but not in the image");
  add_directory("link");
  EXPECT_EQ(unpack("/t"), "/t/link: is a directory in the copy, but not in the image");
  add_file("dir", "x");
  EXPECT_EQ(unpack("/t"), "/t/dir: is a directory in the image, but not in the copy");
}

TEST_F(TreeUnpackerTest, LinksOfTheImageOnTheWayToTheTargetStayInTheRoot) {
  fs::create_directories(root_ / "data/home");
  fs::create_symlink("/data/home", root_ / "home");
  fs::create_symlink("../../../../../..", root_ / "up");
  add_file("a", "x");
  ASSERT_EQ(unpack("/home/agbox"), "");
  EXPECT_EQ(text_of(root_ / "data/home/agbox/a"), "x");
  add_file("b", "y");
  ASSERT_EQ(unpack("/up/inside"), "");
  EXPECT_EQ(text_of(root_ / "inside/b"), "y");
  EXPECT_FALSE(fs::exists(temp_.path() / "inside"));
}

TEST_F(TreeUnpackerTest, NothingIsWrittenOutsideOfTheTarget) {
  for (const std::string path : {"../out", "a/../../out", "..", "/out"}) {
    add_file(path, "x");
    EXPECT_NE(unpack("/t"), "") << path;
  }
  // Through a link of the same stream.
  add_link("link", temp_.path());
  add_file("link/out", "x");
  EXPECT_EQ(unpack("/t"), "/t/link: is a directory in the copy, but not in the image");
  add_link("dots", "../..");
  add_file("dots/out", "x");
  EXPECT_NE(unpack("/t"), "");
  add_link("file", temp_.path() / "out");
  add_file("file", "replaces the link");
  EXPECT_EQ(unpack("/t"), "");
  EXPECT_FALSE(fs::exists(temp_.path() / "out"));
  EXPECT_FALSE(fs::exists(root_ / "out"));
}

TEST_F(TreeUnpackerTest, ASingleFileBecomesTheTarget) {
  add_file("config.yaml", "1");
  ASSERT_EQ(unpack("/home/agbox/settings.yaml", true), "");
  EXPECT_EQ(text_of(root_ / "home/agbox/settings.yaml"), "1");
  add_file("config.yaml", "2");
  ASSERT_EQ(unpack("/new/directory/", true), "");
  EXPECT_EQ(text_of(root_ / "new/directory/config.yaml"), "2");
  add_file("config.yaml", "3");
  ASSERT_EQ(unpack("/home/agbox", true), "");  // a directory by now
  EXPECT_EQ(text_of(root_ / "home/agbox/config.yaml"), "3");
  add_file("config.yaml", "4");
  ASSERT_EQ(unpack("/top", true), "");
  EXPECT_EQ(text_of(root_ / "top"), "4");
  add_file("a", "");
  add_file("b", "");
  EXPECT_NE(unpack("/two", true), "");
}

TEST_F(TreeUnpackerTest, HolesStayHoles) {
  add({.path = "disk",
       .target = "",
       .mode = 0600,
       .size = std::uint64_t{1} << 40,
       .is_sparse = true,
       .extents = {{.offset = 0, .length = 2}, {.offset = std::uint64_t{1} << 39, .length = 3}}},
      "abcde");
  add_file("next", "n");
  ASSERT_EQ(unpack("/t"), "");
  const struct stat status = status_of(root_ / "t/disk");
  EXPECT_EQ(status.st_size, off_t{1} << 40);
  EXPECT_LT(status.st_blocks, 1000);
  const UniqueFd disk(::open((root_ / "t/disk").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 3> bytes{};
  ASSERT_EQ(::pread(disk.get(), bytes.data(), bytes.size(), off_t{1} << 39), 3);
  EXPECT_EQ(std::string_view(bytes.data(), 3), "cde");
  EXPECT_EQ(text_of(root_ / "t/next"), "n");
}

TEST_F(TreeUnpackerTest, MountsKeepTheirAttributesAndAreNotReplaced) {
  fs::create_directories(root_ / "t/mounted");
  std::ofstream(root_ / "t/file") << "";
  std::ofstream(root_ / "source") << "host";
  if (::mount("none", (root_ / "t/mounted").c_str(), "tmpfs", 0, "size=1m,mode=0700") != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  EXPECT_EQ(::mount((root_ / "source").c_str(), (root_ / "t/file").c_str(), "", MS_BIND, ""), 0);
  add_directory("mounted", 0777);
  add_file("mounted/a", "written into it");
  const std::string into = unpack("/t");
  const mode_t mode = status_of(root_ / "t/mounted").st_mode & 07777;
  const std::string written = text_of(root_ / "t/mounted/a");
  add_file("file", "x");
  const std::string over = unpack("/t");
  EXPECT_EQ(::umount2((root_ / "t/mounted").c_str(), MNT_DETACH), 0);
  EXPECT_EQ(::umount2((root_ / "t/file").c_str(), MNT_DETACH), 0);
  EXPECT_EQ(into, "");
  EXPECT_EQ(written, "written into it");
  EXPECT_EQ(mode, 0700U);
  EXPECT_EQ(over, "/t/file: is a mount, which a copy does not replace");
  EXPECT_EQ(text_of(root_ / "source"), "host");
}

// A shadow copy is the container's own: a link of the image must not lead it into a mount.
TEST_F(TreeUnpackerTest, NothingIsUnpackedIntoAMountUnlessPermitted) {
  fs::create_directories(root_ / "t/mounted");
  fs::create_directories(root_ / "home");
  fs::create_symlink("/t/mounted", root_ / "home/user");
  if (::mount("none", (root_ / "t/mounted").c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  add_file("a", "x");
  const std::string permitted = unpack("/home/user/.tool");
  is_outside_mounts_ = true;
  add_file("b", "x");
  const std::string by_link = unpack("/home/user/.tool");
  add_file("c", "x");
  const std::string missing = unpack("/home/user/.new/x");
  add_file("d", "x");
  const std::string file = unpack("/home/user/file", /*is_single_file=*/true);
  add_directory("mounted");
  add_file("mounted/e", "x");
  const std::string below = unpack("/t");
  std::set<std::string> written;
  for (const auto& entry : fs::recursive_directory_iterator(root_ / "t/mounted")) {
    written.insert(entry.path().filename());
  }
  EXPECT_EQ(::umount2((root_ / "t/mounted").c_str(), MNT_DETACH), 0);
  const std::string why =
      ": is in a mount or in a volume of the image, where no shadow copy is written; choose "
      "another image, or leave the tool out";
  EXPECT_EQ(permitted, "");
  EXPECT_EQ(by_link, "/home/user/.tool" + why);
  EXPECT_EQ(missing, "/home/user/.new/x" + why);
  EXPECT_EQ(file, "/home/user" + why);
  EXPECT_EQ(below, "/t/mounted" + why);
  EXPECT_EQ(written, (std::set<std::string>{".tool", "a"}));
  add_file("f", "x");
  EXPECT_EQ(unpack("/t/new/.tool"), "");
}

TEST_F(TreeUnpackerTest, AnIncompleteStreamIsAnError) {
  add_file("a", std::string(5000, 'a'));
  stream_.resize(3000);
  const std::string cut = stream_;
  const UniqueFd root(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::size_t at = 0;
  const auto unpacked = unpack_tree(root.get(), {.target = "/t"}, [&](std::span<char> buffer) {
    const std::size_t size = std::min(buffer.size(), cut.size() - at);
    std::memcpy(buffer.data(), cut.data() + at, size);
    at += size;
    return std::expected<std::size_t, int>(size);
  });
  ASSERT_FALSE(unpacked);
  EXPECT_EQ(unpacked.error().message(), "the stream ends early");
}

TEST_F(TreeUnpackerTest, AFullDiskIsNamed) {
  fs::create_directory(root_ / "t");
  if (::mount("none", (root_ / "t").c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  add_file("big", std::string(200000, 'b'));
  const std::string problem = unpack("/t");
  EXPECT_EQ(::umount2((root_ / "t").c_str(), MNT_DETACH), 0);
  EXPECT_EQ(problem, "/t/big: No space left on device");
}

}  // namespace
}  // namespace agbox::guest
