// SPDX-License-Identifier: Apache-2.0
#include "base/tar/target_unpacker.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/tar/tar_writer.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

std::string file_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_text(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

struct stat lstat_of(const fs::path& path) {
  struct stat status{};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status;
}

class TargetUnpackerTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(target_);
    write_text(outside_, "outside");
  }
  // Nothing next to the target was touched.
  void TearDown() override {
    EXPECT_EQ(file_text(outside_), "outside");
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(temp_.path())) {
      names.insert(entry.path().filename());
    }
    EXPECT_EQ(names, (std::set<std::string>{"outside", "target"}));
    for (const auto& entry : fs::recursive_directory_iterator(target_)) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(".agbox-cp-")) << entry.path();
    }
  }

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
  // The type of the header that was added last, with a new checksum.
  void set_last_type(std::size_t header_at, char type) {
    char* header = stream_.data() + header_at;
    header[156] = type;
    std::memset(header + 148, ' ', 8);
    unsigned sum = 0;
    for (std::size_t i = 0; i < kTarBlock; ++i) sum += static_cast<unsigned char>(header[i]);
    std::snprintf(header + 148, 8, "%06o", sum);
  }

  // Empty, or what went wrong. `stream_` is used up.
  std::string unpack(const UnpackTarget& target, const TreeLimits& limits = {}) {
    stream_ += tar_end();
    return unpack_unended(target, limits);
  }
  std::string unpack_unended(const UnpackTarget& target, const TreeLimits& limits = {}) {
    std::size_t at = 0;
    const auto unpacked = unpack_at(target, limits, [&](std::span<char> buffer) {
      const std::size_t size = std::min(buffer.size(), stream_.size() - at);
      std::memcpy(buffer.data(), stream_.data() + at, size);
      at += size;
      return std::expected<std::size_t, int>(size);
    });
    stream_.clear();
    if (!unpacked) {
      reason_ = unpacked.error().reason().name;
      return unpacked.error().message();
    }
    counts_ = *unpacked;
    return "";
  }
  std::string unpack_content(const TreeLimits& limits = {}) {
    return unpack({.path = target_, .placement = TreePlacement::Content}, limits);
  }
  std::string unpack_root(const fs::path& path, const std::string& root_name = "") {
    return unpack({.path = path, .root_name = root_name});
  }

  TempDirectory temp_;
  fs::path target_ = temp_.path() / "target";
  fs::path outside_ = temp_.path() / "outside";
  std::string stream_;
  TreeCounts counts_;
  std::string_view reason_;
};

// --- where it goes ---

TEST_F(TargetUnpackerTest, ADirectoryGoesIntoAnExistingOne) {
  add_directory("p", 0750);
  add_file("p/a", "hello", 06751);
  add_directory("p/d", 0500);
  add_file("p/d/b", "");
  add_link("p/l", "../x");
  ASSERT_EQ(unpack_root(target_), "");
  EXPECT_EQ(file_text(target_ / "p/a"), "hello");
  EXPECT_EQ(lstat_of(target_ / "p/a").st_mode & 07777, 0751U);  // without setuid and setgid
  EXPECT_EQ(lstat_of(target_ / "p/a").st_mtim.tv_sec, 1000);
  EXPECT_EQ(lstat_of(target_ / "p/a").st_mtim.tv_nsec, 7);
  EXPECT_EQ(lstat_of(target_ / "p").st_mode & 07777, 0750U);
  EXPECT_EQ(lstat_of(target_ / "p").st_mtim.tv_sec, 2000);  // although files were created in it
  EXPECT_EQ(lstat_of(target_ / "p/d").st_mode & 07777, 0500U);
  EXPECT_EQ(fs::read_symlink(target_ / "p/l"), "../x");
  EXPECT_EQ(counts_, (TreeCounts{.entries = 5, .bytes = 5}));
  fs::permissions(target_ / "p/d", fs::perms::owner_all);
}

TEST_F(TargetUnpackerTest, OtherModeBitsThanTheCallersAreDropped) {
  add_directory("p", 01777);
  add_file("p/a", "hello", 0666);
  ASSERT_EQ(unpack({.path = target_, .kept_bits = 0755}), "");
  EXPECT_EQ(lstat_of(target_ / "p").st_mode & 07777, 0755U);
  EXPECT_EQ(lstat_of(target_ / "p/a").st_mode & 07777, 0644U);
}

TEST_F(TargetUnpackerTest, ADirectoryBecomesATargetThatDoesNotExist) {
  add_directory("p", 0750);
  add_file("p/a", "hello");
  ASSERT_EQ(unpack_root(target_ / "new"), "");
  EXPECT_EQ(file_text(target_ / "new/a"), "hello");
  EXPECT_EQ(lstat_of(target_ / "new").st_mode & 07777, 0750U);
}

TEST_F(TargetUnpackerTest, ContentGoesIntoTheTarget) {
  for (const auto& target : {target_, target_ / "new"}) {
    add_directory(".", 0711);
    add_file("./a", "hello");
    ASSERT_EQ(unpack_root(target), "");
    EXPECT_EQ(file_text(target / "a"), "hello");
  }
  EXPECT_EQ(lstat_of(target_ / "new").st_mode & 07777, 0711U);
}

TEST_F(TargetUnpackerTest, AFileBecomesTheTargetOrGoesIntoIt) {
  add_file("a", "1");
  ASSERT_EQ(unpack_root(target_), "");
  EXPECT_EQ(file_text(target_ / "a"), "1");
  add_file("a", "2");
  ASSERT_EQ(unpack_root(target_ / "b"), "");
  EXPECT_EQ(file_text(target_ / "b"), "2");
  add_file("a", "3");
  ASSERT_EQ(unpack_root(target_ / "b"), "");
  EXPECT_EQ(file_text(target_ / "b"), "3");
}

TEST_F(TargetUnpackerTest, TheCallerNamesTheRootAndNotTheStream) {
  write_text(target_ / "precious", "mine");
  add_file("precious", "evil");
  ASSERT_EQ(unpack_root(target_, "wanted"), "");
  add_directory("precious");
  add_file("precious/x", "evil");
  ASSERT_EQ(unpack_root(target_, "tree"), "");
  EXPECT_EQ(file_text(target_ / "precious"), "mine");
  EXPECT_EQ(file_text(target_ / "wanted"), "evil");
  EXPECT_EQ(file_text(target_ / "tree/x"), "evil");
  // A root without a name would be the target itself.
  add_directory(".");
  add_file("./precious", "evil");
  EXPECT_NE(unpack_root(target_, "tree").find("root without a name"), std::string::npos);
  EXPECT_EQ(file_text(target_ / "precious"), "mine");
}

TEST_F(TargetUnpackerTest, WhatDoesNotFitTheTargetIsRefused) {
  write_text(target_ / "file", "old");
  fs::create_directory(target_ / "directory");
  const auto refused = [&](std::string_view why, std::string_view reason) {
    EXPECT_EQ(reason_, reason) << why;
    EXPECT_EQ(file_text(target_ / "file"), "old");
  };
  add_directory("p");
  EXPECT_NE(unpack_root(target_ / "file").find("a directory cannot replace"), std::string::npos);
  refused("a directory onto a file", "PATH_CONFLICT");
  add_file("a", "x");
  EXPECT_NE(unpack_root(target_ / "file/").find("is not a directory"), std::string::npos);
  refused("a file with a slash", "PATH_CONFLICT");
  add_file("a", "x");
  EXPECT_NE(unpack_root((target_ / "missing/").string()).find("create this directory first"),
            std::string::npos);
  refused("a missing directory", "PATH_NOT_FOUND");
  add_file("a", "x");
  EXPECT_NE(unpack_root(target_ / "missing/b").find("create this directory first"),
            std::string::npos);
  refused("a missing parent", "PATH_NOT_FOUND");
  add_file("directory", "x");
  EXPECT_NE(unpack_root(target_).find("directory: is a directory, which a file cannot replace"),
            std::string::npos);
  refused("a file onto a directory", "PATH_CONFLICT");
  add_directory("file");
  EXPECT_NE(unpack_root(target_).find("file: is not a directory, but one is copied there"),
            std::string::npos);
  refused("a directory onto a file inside", "PATH_CONFLICT");
  add_file("a", "x");
  EXPECT_NE(unpack({.path = target_ / "file", .placement = TreePlacement::Content}), "");
  refused("content onto a file", "PATH_CONFLICT");
}

TEST_F(TargetUnpackerTest, ATargetMayBeALinkToADirectory) {
  fs::create_directory(target_ / "real");
  fs::create_symlink("real", target_ / "link");
  add_file("a", "x");
  ASSERT_EQ(unpack_root(target_ / "link"), "");
  EXPECT_EQ(file_text(target_ / "real/a"), "x");
}

// The link may be what an earlier copy brought from the sandbox.
TEST_F(TargetUnpackerTest, OfUntrustedOriginNothingGoesThroughATargetThatIsALink) {
  fs::create_directory(target_ / "real");
  fs::create_symlink("real", target_ / "link");
  for (const TreePlacement placement : {TreePlacement::Root, TreePlacement::Content}) {
    add_file("a", "x");
    EXPECT_THAT(unpack({.path = target_ / "link", .placement = placement, .refuses_link = true}),
                testing::HasSubstr("link: is a symbolic link to a directory; add a slash"));
    EXPECT_EQ(reason_, "PATH_CONFLICT");
    EXPECT_TRUE(fs::is_empty(target_ / "real"));
  }
  add_file("a", "x");
  ASSERT_EQ(unpack({.path = target_ / "link/", .refuses_link = true}), "");
  EXPECT_EQ(file_text(target_ / "real/a"), "x");
}

TEST_F(TargetUnpackerTest, AFileReplacesALinkAndDoesNotWriteThroughIt) {
  fs::create_symlink(outside_, target_ / "link");
  add_file("a", "x");
  ASSERT_EQ(unpack_root(target_ / "link"), "");
  EXPECT_EQ(file_text(target_ / "link"), "x");
  EXPECT_FALSE(fs::is_symlink(target_ / "link"));
}

TEST_F(TargetUnpackerTest, ExistingDirectoriesKeepTheirAttributes) {
  fs::create_directory(target_ / "p");
  fs::permissions(target_ / "p", fs::perms(0711));
  add_directory("p", 0777);
  add_file("p/a", "x");
  ASSERT_EQ(unpack_root(target_), "");
  EXPECT_EQ(lstat_of(target_ / "p").st_mode & 07777, 0711U);
  EXPECT_EQ(file_text(target_ / "p/a"), "x");
}

TEST_F(TargetUnpackerTest, FilesAndLinksAreReplaced) {
  write_text(target_ / "a", "old");
  write_text(target_ / "b", "old");
  fs::create_symlink("nowhere", target_ / "c");
  add_file("a", "new");
  add_link("b", "a");
  add_file("c", "file");
  ASSERT_EQ(unpack_content(), "");
  EXPECT_EQ(file_text(target_ / "a"), "new");
  EXPECT_EQ(fs::read_symlink(target_ / "b"), "a");
  EXPECT_EQ(file_text(target_ / "c"), "file");
}

TEST_F(TargetUnpackerTest, HolesStayHoles) {
  const std::uint64_t size = std::uint64_t{1} << 40;
  add({.path = "sparse",
       .target = "",
       .mode = 0600,
       .size = size,
       .is_sparse = true,
       .extents = {{.offset = 4096, .length = 4}}},
      "data");
  ASSERT_EQ(unpack_content(), "");
  EXPECT_EQ(static_cast<std::uint64_t>(lstat_of(target_ / "sparse").st_size), size);
  EXPECT_LT(lstat_of(target_ / "sparse").st_blocks, 1024);
  EXPECT_EQ(counts_.bytes, 4U);
}

// --- what a hostile stream tries ---

TEST_F(TargetUnpackerTest, NamesThatLeadOutAreRefused) {
  for (const std::string& name :
       std::vector<std::string>{"../outside", "d/../../outside", "/outside", "..", "./.."}) {
    add_file("first", "x");
    add_file(name, "evil");
    EXPECT_NE(unpack_content(), "") << name;
    add_directory(name);
    EXPECT_NE(unpack_root(target_), "") << name;
  }
}

TEST_F(TargetUnpackerTest, NothingGoesThroughALinkOfTheStream) {
  add_link("up", "..");
  add_file("up/outside", "evil");
  EXPECT_NE(unpack_content().find("up: is not a directory"), std::string::npos);
  add_link("absolute", temp_.path());
  add_directory("absolute");
  EXPECT_NE(unpack_content(), "");
  add_link("file", outside_);
  add_file("file", "own");  // replaces the link
  ASSERT_EQ(unpack_content(), "");
  EXPECT_EQ(file_text(target_ / "file"), "own");
}

TEST_F(TargetUnpackerTest, NothingGoesThroughALinkOfTheTarget) {
  fs::create_symlink("..", target_ / "up");
  add_file("up/outside", "evil");
  EXPECT_NE(unpack_content(), "");
  add_directory("up");
  EXPECT_NE(unpack_root(target_), "");
}

TEST_F(TargetUnpackerTest, ADirectoryThatBecomesALinkIsNotEnteredAgain) {
  add_directory("d");
  add_file("e", "x");
  add_link("d", "..");
  EXPECT_NE(unpack_content().find("d: is a directory"), std::string::npos);
}

TEST_F(TargetUnpackerTest, HardLinksAndDevicesAreRefused) {
  for (const char type : {'1', '3', '4', '6', 'Z'}) {
    const std::size_t at = stream_.size();
    add({.path = "x", .target = "", .mode = 0644});
    set_last_type(at, type);
    EXPECT_NE(unpack_content().find("x: "), std::string::npos) << type;
    EXPECT_FALSE(fs::exists(target_ / "x"));
  }
}

TEST_F(TargetUnpackerTest, DuplicatesReplaceEachOther) {
  add_file("x", "1");
  add_file("x", "2");
  ASSERT_EQ(unpack_content(), "");
  EXPECT_EQ(file_text(target_ / "x"), "2");
  add_file("x", "3");
  add_directory("x");
  EXPECT_NE(unpack_content(), "");
}

TEST_F(TargetUnpackerTest, LimitsEndIt) {
  for (int i = 0; i < 5; ++i) add_file(std::to_string(i), "x");
  EXPECT_EQ(unpack_content({.entries = 3}),
            "more than 3 entries; copy less at a time; entries copied before: 3");
  EXPECT_EQ(reason_, "COPY_TOO_LARGE");
  EXPECT_FALSE(fs::exists(target_ / "3"));
  add_file("large", "0123456789");
  EXPECT_EQ(unpack_content({.bytes = 9}), "more than 9 bytes; copy less at a time");
  EXPECT_FALSE(fs::exists(target_ / "large"));
}

TEST_F(TargetUnpackerTest, TooManyDirectoriesAreRefused) {
  std::string deep = "d";
  for (std::size_t i = 0; i < kMaxTreeDepth; ++i) deep += "/d";
  add_directory(deep);
  EXPECT_NE(unpack_content().find("too many directories"), std::string::npos);
}

TEST_F(TargetUnpackerTest, ARootHasEverythingBelowIt) {
  add_directory("p");
  add_file("q", "evil");
  EXPECT_NE(unpack_root(target_).find("q: is not below p"), std::string::npos);
  add_file("a", "x");
  add_file("b", "evil");
  EXPECT_NE(unpack_root(target_).find("b: is more than the one file"), std::string::npos);
  EXPECT_FALSE(fs::exists(target_ / "q"));
  EXPECT_FALSE(fs::exists(target_ / "b"));
  add_file("p/first", "x");
  EXPECT_NE(unpack_root(target_), "");
  EXPECT_EQ(unpack_root(target_), "the stream has no entries");
}

TEST_F(TargetUnpackerTest, AFileThatEndsEarlyLeavesWhatWasThere) {
  write_text(target_ / "a", "old");
  for (const bool is_new : {false, true}) {
    add({.path = is_new ? "b" : "a", .target = "", .mode = 0600}, std::string(4096, 'x'));
    stream_.resize(stream_.size() - 2048);
    EXPECT_EQ(unpack_unended({.path = target_, .placement = TreePlacement::Content}),
              "the stream ends early");
  }
  EXPECT_EQ(file_text(target_ / "a"), "old");
  EXPECT_FALSE(fs::exists(target_ / "b"));
}

TEST_F(TargetUnpackerTest, AStreamWithoutItsEndIsIncomplete) {
  add_file("a", "x");
  EXPECT_EQ(unpack_unended({.path = target_, .placement = TreePlacement::Content}),
            "the stream ends early; entries copied before: 1");
}

}  // namespace
}  // namespace agbox
