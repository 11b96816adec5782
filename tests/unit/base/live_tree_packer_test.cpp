// SPDX-License-Identifier: Apache-2.0
#include "base/tar/live_tree_packer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "base/tar/tar_reader.h"
#include "base/unique_fd.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

void put_text(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

struct Read {
  TarEntry entry;
  std::string content;
};

// By path.
std::map<std::string, Read> entries_of(const std::string& stream) {
  std::size_t at = 0;
  TarReader reader([&](std::span<char> buffer) {
    const std::size_t size = std::min(buffer.size(), stream.size() - at);
    std::memcpy(buffer.data(), stream.data() + at, size);
    at += size;
    return std::expected<std::size_t, int>(size);
  });
  std::map<std::string, Read> entries;
  while (true) {
    auto entry = reader.next();
    EXPECT_TRUE(entry) << (entry ? "" : entry.error().message());
    if (!entry || !*entry) return entries;
    Read read{.entry = **entry, .content = ""};
    for (auto bytes = reader.content(); bytes && !bytes->empty(); bytes = reader.content()) {
      read.content += *bytes;
    }
    entries.insert_or_assign(read.entry.path, std::move(read));
  }
}

class LiveTreePackerTest : public testing::Test {
 protected:
  // The stream; what went wrong is in problem_.
  std::string pack(const std::string& path, const TreeLimits& limits = {}) {
    std::string stream;
    const auto packed = pack_live_tree(path, limits, [&](std::string_view bytes) -> Result<> {
      if (on_write_) on_write_();
      stream += bytes;
      return {};
    });
    problem_ = packed ? "" : packed.error().message();
    reason_ = packed ? "" : packed.error().reason().name;
    if (packed) packed_ = *packed;
    return stream;
  }

  TempDirectory temp_;
  fs::path tree_ = temp_.path() / "tree";
  std::function<void()> on_write_;
  PackedTree packed_;
  std::string problem_;
  std::string_view reason_;
};

TEST_F(LiveTreePackerTest, ATreeIsPackedBelowItsName) {
  fs::create_directories(tree_ / "d");
  put_text(tree_ / "d/a", "hello");
  fs::permissions(tree_ / "d/a", fs::perms(06640));
  fs::create_symlink("../../outside", tree_ / "l");
  for (const std::string& path : {tree_.string(), tree_.string() + "/"}) {
    const auto entries = entries_of(pack(path));
    ASSERT_EQ(problem_, "");
    ASSERT_EQ(entries.size(), 4U);
    EXPECT_EQ(entries.at("tree").entry.kind, TarEntry::Kind::Directory);
    EXPECT_EQ(entries.at("tree/d/a").content, "hello");
    EXPECT_EQ(entries.at("tree/d/a").entry.mode, 0640U);
    EXPECT_EQ(entries.at("tree/l").entry.target, "../../outside");
    EXPECT_EQ(packed_.counts, (TreeCounts{.entries = 4, .bytes = 5}));
    EXPECT_EQ(packed_.notes.count, 0U);
  }
}

TEST_F(LiveTreePackerTest, ADotIsTheContent) {
  fs::create_directories(tree_);
  put_text(tree_ / "a", "x");
  const auto entries = entries_of(pack(tree_.string() + "/."));
  ASSERT_EQ(problem_, "");
  EXPECT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries.at("./a").content, "x");
}

TEST_F(LiveTreePackerTest, AFileAndALinkAreTheRoot) {
  put_text(tree_, "file");
  fs::create_symlink("tree", temp_.path() / "link");
  EXPECT_EQ(entries_of(pack(tree_)).at("tree").content, "file");
  const auto link = entries_of(pack(temp_.path() / "link"));
  EXPECT_EQ(link.at("link").entry.kind, TarEntry::Kind::Symlink);
  EXPECT_EQ(link.at("link").entry.target, "tree");
}

TEST_F(LiveTreePackerTest, ALinkToADirectoryIsFollowedIfItIsWrittenAsOne) {
  fs::create_directories(tree_);
  put_text(tree_ / "a", "x");
  fs::create_symlink("tree", temp_.path() / "link");
  EXPECT_EQ(entries_of(pack((temp_.path() / "link").string() + "/")).at("link/a").content, "x");
}

TEST_F(LiveTreePackerTest, WhatCannotBePackedIsNamed) {
  pack(tree_);
  EXPECT_EQ(problem_, tree_.string() + ": No such file or directory");
  EXPECT_EQ(reason_, "PATH_NOT_FOUND");
  put_text(tree_, "file");
  pack(tree_.string() + "/");
  EXPECT_EQ(problem_, tree_.string() + "/: Not a directory");
  pack(tree_ / "below");
  EXPECT_EQ(reason_, "PATH_CONFLICT");
  ASSERT_EQ(::mkfifo((temp_.path() / "fifo").c_str(), 0600), 0);
  pack(temp_.path() / "fifo");
  EXPECT_EQ(problem_, (temp_.path() / "fifo").string() + ": is a FIFO, which cannot be copied");
  pack("/proc/cpuinfo");
  EXPECT_NE(problem_.find("filesystem of the kernel"), std::string::npos) << problem_;
}

TEST_F(LiveTreePackerTest, FifosSocketsAndDevicesAreLeftOut) {
  fs::create_directories(tree_);
  ASSERT_EQ(::mkfifo((tree_ / "fifo").c_str(), 0600), 0);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (tree_ / "socket").string().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  put_text(tree_ / "a", "x");
  const auto entries = entries_of(pack(tree_));
  EXPECT_EQ(problem_, "");
  EXPECT_EQ(entries.size(), 2U);
  EXPECT_EQ(packed_.notes.count, 2U);
  EXPECT_NE(packed_.notes.first.find(tree_.string() + "/"), std::string::npos);
}

TEST_F(LiveTreePackerTest, HolesAreNotRead) {
  fs::create_directories(tree_);
  const fs::path sparse = tree_ / "sparse";
  put_text(sparse, "begin");
  fs::resize_file(sparse, std::uintmax_t{1} << 40);
  const auto entries = entries_of(pack(tree_));
  EXPECT_EQ(problem_, "");
  EXPECT_TRUE(entries.at("tree/sparse").entry.is_sparse);
  EXPECT_EQ(entries.at("tree/sparse").entry.size, std::uint64_t{1} << 40);
  EXPECT_LT(packed_.counts.bytes, std::uint64_t{1} << 20);
}

TEST_F(LiveTreePackerTest, AFileThatShrinksIsFilledWithZeros) {
  fs::create_directories(tree_);
  put_text(tree_ / "log", std::string(std::size_t{1} << 20, 'x'));
  on_write_ = [&] { fs::resize_file(tree_ / "log", 100); };
  const auto entries = entries_of(pack(tree_));
  EXPECT_EQ(problem_, "");
  const std::string& content = entries.at("tree/log").content;
  EXPECT_EQ(content.size(), std::size_t{1} << 20);
  EXPECT_EQ(content.back(), '\0');
  EXPECT_EQ(packed_.notes.count, 1U);
  EXPECT_NE(packed_.notes.first.find("became shorter"), std::string::npos);
}

TEST_F(LiveTreePackerTest, LimitsEndIt) {
  fs::create_directories(tree_);
  for (int i = 0; i < 5; ++i) put_text(tree_ / std::to_string(i), "12345");
  pack(tree_, {.entries = 5});
  EXPECT_EQ(problem_, tree_.string() + ": has more than 5 entries");
  pack(tree_, {.bytes = 24});
  EXPECT_EQ(problem_, tree_.string() + ": has more than 24 bytes, without holes of sparse files");
  EXPECT_EQ(reason_, "COPY_TOO_LARGE");
  fs::path deep = tree_;
  for (std::size_t i = 0; i < kMaxTreeDepth; ++i) deep /= "d";
  fs::create_directories(deep);
  pack(tree_);
  EXPECT_NE(problem_.find("deeper than 128 directories"), std::string::npos) << problem_;
}

TEST_F(LiveTreePackerTest, TheSinksErrorEndsIt) {
  put_text(tree_, "x");
  const auto packed = pack_live_tree(
      tree_, {}, [](std::string_view) -> Result<> { return fail(reason::kCancelled, "enough"); });
  EXPECT_EQ(packed.error().message(), "enough");
}

// Files, directories and links take each other's place while they are packed; what a link leads to
// is never in the stream.
TEST_F(LiveTreePackerTest, ARaceLeadsNowhere) {
  put_text(temp_.path() / "secret", "secret");
  fs::create_directories(temp_.path() / "secrets");
  put_text(temp_.path() / "secrets/x", "secret");
  fs::create_directories(tree_ / "d/x");
  put_text(tree_ / "d/x/x", "fine");
  std::atomic<bool> is_over = false;
  std::thread racer([&] {
    const fs::path d = tree_ / "d";
    const fs::path f = tree_ / "f";
    std::error_code ignored;
    while (!is_over) {
      fs::rename(d, tree_ / "e", ignored);
      fs::create_symlink("../secrets", d, ignored);
      fs::create_symlink("../secret", f, ignored);
      fs::remove(d, ignored);
      fs::remove(f, ignored);
      put_text(f, "fine");
      fs::rename(tree_ / "e", d, ignored);
      fs::remove(f, ignored);
    }
  });
  for (int i = 0; i < 300; ++i) {
    const std::string stream = pack(tree_);
    ASSERT_EQ(problem_, "");
    for (const auto& [path, read] : entries_of(stream)) {
      EXPECT_TRUE(path == "tree" || path.starts_with("tree/"));
      EXPECT_NE(read.content, "secret");
    }
  }
  is_over = true;
  racer.join();
}

}  // namespace
}  // namespace agbox
