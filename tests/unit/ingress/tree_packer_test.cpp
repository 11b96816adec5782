// SPDX-License-Identifier: Apache-2.0
#include "ingress/tree_packer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "base/tar/tar_reader.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

void write_file(const fs::path& path, std::string_view content) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

struct Unpacked {
  TarEntry entry;
  std::string content;
};

// What arrives at the other end, and how the packer ended.
struct Packed {
  Result<SkippedEntries> outcome;
  std::map<std::string, Unpacked> entries;
  bool is_complete = false;  // the stream had its end

  std::string problem() const { return outcome ? "" : outcome.error().message(); }
  bool has(const std::string& path) const { return entries.contains(path); }
  std::string names() const {
    std::string names;
    for (const auto& [name, entry] : entries) names += name + " ";
    return names;
  }
};

class TreePackerTest : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    fs::create_directory(root_);
  }

  // `while_reading` is called with each entry that arrived, before its content is read.
  Packed pack(std::vector<std::string> exclude_patterns = {}, PackLimits limits = {},
              const std::function<void(const TarEntry&)>& while_reading = {}) {
    return pack_path(root_, std::move(exclude_patterns), limits, while_reading);
  }

  Packed pack_path(const fs::path& path, std::vector<std::string> exclude_patterns = {},
                   PackLimits limits = {},
                   const std::function<void(const TarEntry&)>& while_reading = {}) {
    std::array<int, 2> ends;
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    UniqueFd reading(ends[0]);
    TreeSource source{.root = UniqueFd(::open(path.c_str(), O_PATH | O_CLOEXEC)),
                      .path = path,
                      .exclude_patterns = std::move(exclude_patterns),
                      .use = use_};
    Packed packed;
    std::thread packer([&, writing = UniqueFd(ends[1])]() mutable {
      if (in_packer_) in_packer_();
      packed.outcome = pack_tree(std::move(source), std::move(writing), limits, progress_);
    });
    TarReader reader([&](std::span<char> buffer) -> std::expected<std::size_t, int> {
      const ssize_t got = ::read(reading.get(), buffer.data(), buffer.size());
      if (got < 0) return std::unexpected(errno);
      return static_cast<std::size_t>(got);
    });
    while (true) {
      const auto entry = reader.next();
      if (!entry) break;
      if (!*entry) {
        packed.is_complete = true;
        break;
      }
      if (while_reading) while_reading(**entry);
      Unpacked& unpacked = packed.entries[(*entry)->path];
      unpacked.entry = **entry;
      for (auto bytes = reader.content(); bytes && !bytes->empty(); bytes = reader.content()) {
        unpacked.content += *bytes;
      }
    }
    packer.join();
    EXPECT_EQ(packed.is_complete, packed.outcome.has_value());
    return packed;
  }

  std::string path(const std::string& name) const { return (root_ / name).string(); }

  // Twenty links, each of which leads through a path of 800 names to the one before.
  void plant_chain() {
    fs::create_directory(root_ / "p");
    std::string detour;
    for (int i = 0; i < 800; ++i) detour += "p/../";
    fs::create_symlink("p", root_ / "0");
    for (int i = 1; i < 20; ++i) {
      fs::create_symlink(detour + std::to_string(i - 1), root_ / std::to_string(i));
    }
  }

  TempDirectory temp_;
  fs::path root_ = temp_.path() / "source";
  PackProgress progress_;
  std::function<void()> in_packer_;
  TreeUse use_ = TreeUse::Copy;
};

TEST_F(TreePackerTest, ATreeArrivesWithModesTimesAndLinks) {
  write_file(root_ / "a.txt", "hello");
  write_file(root_ / "bin/tool", "#!/bin/sh\n");
  ASSERT_EQ(::chmod(path("bin/tool").c_str(), 06755), 0);
  ASSERT_EQ(::chmod(path("bin").c_str(), 0700), 0);
  fs::create_directory(root_ / "empty");
  fs::create_symlink("../a.txt", root_ / "bin/link");
  fs::create_symlink(root_ / "bin/tool", root_ / "absolute");
  fs::create_hard_link(root_ / "a.txt", root_ / "hard");
  const timespec times[2] = {{1, 2}, {1234567890, 987654321}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path("a.txt").c_str(), times, 0), 0);

  const Packed packed = pack();
  ASSERT_TRUE(packed.outcome) << packed.problem();
  EXPECT_EQ(packed.names(), "a.txt absolute bin bin/link bin/tool empty hard ");
  EXPECT_EQ(packed.entries.at("a.txt").content, "hello");
  EXPECT_EQ(packed.entries.at("hard").content, "hello");
  EXPECT_EQ(packed.entries.at("a.txt").entry.mtime_seconds, 1234567890);
  EXPECT_EQ(packed.entries.at("a.txt").entry.mtime_nanoseconds, 987654321U);
  EXPECT_EQ(packed.entries.at("bin/tool").entry.mode, 0755U);  // without setuid and setgid
  EXPECT_EQ(packed.entries.at("bin").entry.mode, 0700U);
  EXPECT_EQ(packed.entries.at("bin/link").entry.target, "../a.txt");
  EXPECT_EQ(packed.entries.at("absolute").entry.target, "bin/tool");
  EXPECT_EQ(progress_.entries, 7U);
  EXPECT_EQ(progress_.bytes, 20U);
}

TEST_F(TreePackerTest, ASingleFileHasItsOwnName) {
  write_file(root_ / "config.yaml", "a: 1\n");
  const Packed packed = pack_path(root_ / "config.yaml");
  ASSERT_TRUE(packed.outcome) << packed.problem();
  EXPECT_EQ(packed.names(), "config.yaml ");
  EXPECT_EQ(packed.entries.at("config.yaml").content, "a: 1\n");
}

TEST_F(TreePackerTest, WhatIsExcludedIsSkippedWithEverythingBelow) {
  write_file(root_ / "node_modules/x/y.js", "");
  write_file(root_ / "src/node_modules/z.js", "");
  write_file(root_ / "src/main.c", "");
  write_file(root_ / "a.log", "");
  write_file(root_ / "keep.log", "");
  ASSERT_EQ(::mkfifo(path("ignored.fifo").c_str(), 0600), 0);
  const Packed packed = pack({"node_modules", "*.log", "!keep.log", "*.fifo"});
  ASSERT_TRUE(packed.outcome) << packed.problem();
  EXPECT_EQ(packed.names(), "keep.log src src/main.c ");
}

TEST_F(TreePackerTest, FifosSocketsAndDevicesAreRefusedByName) {
  ASSERT_EQ(::mkfifo(path("a\n\x1b[2J").c_str(), 0600), 0);
  // With no writer: opening it for reading would block forever.
  EXPECT_EQ(pack().problem(), "copy source contains a FIFO: " + root_.string() +
                                  "/a\\x0a\\x1b[2J; leave it out with exclude_patterns");
  fs::remove(path("a\n\x1b[2J"));

  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path("s").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(pack().problem(),
            "copy source contains a socket: " + path("s") + "; leave it out with exclude_patterns");
  fs::remove(root_ / "s");

  if (::mknod(path("null").c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) {
    GTEST_SKIP() << "devices need root";
  }
  EXPECT_EQ(pack().problem(), "copy source contains a device: " + path("null") +
                                  "; leave it out with exclude_patterns");
}

TEST_F(TreePackerTest, LinksToTheOutsideAreRefusedByName) {
  fs::create_directory(root_ / "d");
  fs::create_symlink("../../secret", root_ / "d/out");
  EXPECT_EQ(pack().problem(), "copy source contains external symlink: " + path("d/out"));
  EXPECT_EQ(pack({"out"}).problem(), "");
}

// A link is short, and may take long to resolve.
TEST_F(TreePackerTest, LinksThatTakeLongAreRefusedByName) {
  plant_chain();
  const std::string problem = pack({}, {.lookups = 1000}).problem();
  const std::string begin =
      "copy source has symbolic links that take too long to resolve: " + root_.string() + ", at ";
  EXPECT_EQ(problem.substr(0, begin.size()), begin);
  EXPECT_TRUE(problem.ends_with("; leave them out with exclude_patterns")) << problem;
  write_file(root_ / ".gitignore", "x\n");  // which has to be compared with all of them first
  EXPECT_EQ(pack({}, {.lookups = 1000}).problem().substr(0, begin.size()), begin);
}

TEST_F(TreePackerTest, IgnoredLinksToTheOutsideAreLeftOut) {
  write_file(root_ / ".gitignore", ".venv/\n/latest\nbuild/\n");
  write_file(root_ / ".venv/lib/x.py", "");
  fs::create_directory(root_ / ".venv/bin");
  fs::create_symlink("/usr/bin/python3", root_ / ".venv/bin/python");
  fs::create_symlink("/var/log/latest", root_ / "latest");
  write_file(root_ / "build/a.o", "ignored, but without a link to the outside");
  const Packed packed = pack();
  ASSERT_TRUE(packed.outcome) << packed.problem();
  EXPECT_EQ(packed.names(), ".gitignore build build/a.o ");

  fs::create_symlink("/etc/passwd", root_ / "passwd");
  EXPECT_EQ(pack().problem(), "copy source contains external symlink: " + path("passwd"));
}

TEST_F(TreePackerTest, OnlyTheGitignoreOfTheRootCounts) {
  write_file(root_ / "sub/.gitignore", "out\n");
  fs::create_symlink("/etc/passwd", root_ / "sub/out");
  EXPECT_EQ(pack().problem(), "copy source contains external symlink: " + path("sub/out"));
}

// A .gitignore that is a link is not followed: it could be any file of the host.
TEST_F(TreePackerTest, AGitignoreThatIsALinkIsNotRead) {
  write_file(temp_.path() / "rules", "out\n");
  fs::create_symlink("rules-inside", root_ / ".gitignore");
  write_file(root_ / "rules-inside", "out\n");
  fs::create_symlink("/etc/passwd", root_ / "out");
  EXPECT_EQ(pack().problem(), "copy source contains external symlink: " + path("out"));
}

TEST_F(TreePackerTest, HolesAreNotPacked) {
  const UniqueFd file(::open(path("disk").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const off_t size = off_t{1} << 40;
  ASSERT_EQ(::ftruncate(file.get(), size), 0);
  ASSERT_EQ(::pwrite(file.get(), "middle", 6, size / 2), 6);
  const Packed packed = pack();
  ASSERT_TRUE(packed.outcome) << packed.problem();
  const TarEntry& entry = packed.entries.at("disk").entry;
  EXPECT_TRUE(entry.is_sparse);
  EXPECT_EQ(entry.size, static_cast<std::uint64_t>(size));
  EXPECT_LT(progress_.bytes, std::uint64_t{1} << 20);
  EXPECT_TRUE(packed.entries.at("disk").content.contains("middle"));
}

// The pipe holds less than the file: the packer waits in the middle of it while it changes.
class ChangingFileTest : public TreePackerTest, public testing::WithParamInterface<off_t> {};

TEST_P(ChangingFileTest, FailsTheCopyByName) {
  write_file(root_ / "growing", std::string(std::size_t{8} << 20, 'x'));
  const Packed packed = pack({}, {}, [&](const TarEntry&) {
    ASSERT_EQ(::truncate(path("growing").c_str(), (off_t{8} << 20) + GetParam()), 0);
  });
  EXPECT_EQ(packed.problem(), "copy source changed while it was copied: " + path("growing") +
                                  "; try again when nothing writes to it");
}
INSTANTIATE_TEST_SUITE_P(Shorter, ChangingFileTest, testing::Values(-(off_t{8} << 20), -1));
INSTANTIATE_TEST_SUITE_P(Longer, ChangingFileTest, testing::Values(1));

TEST_F(TreePackerTest, UnreadableFilesFailTheCopyByName) {
  write_file(root_ / "secret", "x");
  ASSERT_EQ(::chmod(path("secret").c_str(), 0), 0);
  ASSERT_EQ(::chmod(root_.c_str(), 0755), 0);
  in_packer_ = [] { ::setfsuid(65534); };  // of its thread only; root would read everything
  EXPECT_EQ(pack().problem(),
            "copy source cannot be read: " + path("secret") + ": Permission denied");
}

TEST_F(TreePackerTest, OtherFilesystemsAreRefusedByName) {
  fs::create_directory(root_ / "other");
  if (::mount("none", path("other").c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  const Packed packed = pack();
  const Packed without = pack({"other"});
  ASSERT_EQ(::umount2(path("other").c_str(), MNT_DETACH), 0);
  EXPECT_EQ(packed.problem(), "copy source contains another filesystem: " + path("other") +
                                  "; leave it out with exclude_patterns, or copy it on its own");
  EXPECT_EQ(without.problem(), "");
}

TEST_F(TreePackerTest, LimitsAreNamed) {
  for (const char* name : {"a", "b", "c"}) write_file(root_ / "x" / name, "12345");
  EXPECT_TRUE(pack({}, {.entries = 4}).outcome);
  progress_.entries = 0;
  EXPECT_TRUE(
      pack({}, {.entries = 3}).problem().starts_with("copy source has more than 3 entries"));
  progress_.entries = 0;
  progress_.bytes = 0;
  EXPECT_TRUE(pack({}, {.bytes = 14}).problem().starts_with("copy source has more than 14 bytes"));
  fs::create_directories(root_ / "y/y/y/y");
  progress_.bytes = 0;
  EXPECT_TRUE(
      pack({}, {.depth = 3}).problem().starts_with("copy source is deeper than 3 directories"));
}

TEST_F(TreePackerTest, NamesAreBytes) {
  write_file(root_ / "\xff\xfe", "x");
  write_file(root_ / std::string(255, 'n') / std::string(255, 'm'), "deep");
  const Packed packed = pack();
  ASSERT_TRUE(packed.outcome) << packed.problem();
  EXPECT_TRUE(packed.has("\xff\xfe"));
  EXPECT_TRUE(packed.has(std::string(255, 'n') + "/" + std::string(255, 'm')));
}

// Another process swaps a directory and a link to the outside all the time. Whatever arrives is
// from the tree.
TEST_F(TreePackerTest, NothingOfTheOutsideArrivesWhileLinksAreSwapped) {
  write_file(temp_.path() / "outside/secret", "secret");
  write_file(root_ / "d/secret", "public");
  fs::create_symlink(temp_.path() / "outside", temp_.path() / "link");
  std::atomic<bool> is_done = false;
  std::thread attacker([&] {
    const std::string one = path("d");
    const std::string other = temp_.path() / "link";
    while (!is_done) {
      ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
    }
  });
  for (int round = 0; round < 500; ++round) {
    const Packed packed = pack();
    for (const auto& [name, unpacked] : packed.entries) EXPECT_NE(unpacked.content, "secret");
  }
  is_done = true;
  attacker.join();
}

TEST_F(TreePackerTest, AnAbortEndsIt) {
  write_file(root_ / "a", "x");
  progress_.abort.fire();
  const Packed packed = pack();
  ASSERT_FALSE(packed.outcome);
  EXPECT_EQ(packed.outcome.error().reason(), reason::kCancelled);
}

// --- shadow copies of builtin tools ---

TEST_F(TreePackerTest, AShadowCopyFollowsNoLinkAndLeavesOutWhatIsNoFile) {
  use_ = TreeUse::ShadowCopy;
  write_file(temp_.path() / "secret/key", "secret");
  write_file(root_ / "sub/file", "x");
  write_file(root_ / ".gitignore", "out\nsub/\n");
  fs::create_symlink(temp_.path() / "secret", root_ / "out");
  fs::create_symlink("../../secret/key", root_ / "sub/up");
  fs::create_symlink(root_ / "sub/file", root_ / "absolute");
  fs::create_symlink("sub/file", root_ / "relative");
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  // sockaddr is the generic address type of the C API.
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const Packed packed = pack();
  ASSERT_TRUE(packed.outcome.has_value()) << packed.problem();
  EXPECT_EQ(packed.names(), ".gitignore absolute out relative sub sub/file sub/up ");
  EXPECT_EQ(packed.entries.at("out").entry.target, temp_.path() / "secret");
  EXPECT_EQ(packed.entries.at("sub/up").entry.target, "../../secret/key");
  EXPECT_EQ(packed.entries.at("absolute").entry.target, "sub/file");
  EXPECT_EQ(packed.entries.at("relative").entry.target, "sub/file");
}

TEST_F(TreePackerTest, AShadowCopyResolvesNoLink) {
  use_ = TreeUse::ShadowCopy;
  plant_chain();
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "d/";
  fs::create_directories(root_ / deep);
  // Relative, this one would be longer than a link may be.
  const std::string here = root_.string() + "/";
  const std::string far = here + std::string(4095 - here.size() - 4, 'x') + "/x/x";
  fs::create_symlink(far, root_ / (deep + "far"));
  const Packed packed = pack({}, {.lookups = 0});
  ASSERT_TRUE(packed.outcome.has_value()) << packed.problem();
  EXPECT_EQ(packed.entries.at("19").entry.target, fs::read_symlink(root_ / "19"));
  EXPECT_TRUE(packed.entries.at(deep + "far").entry.target == far);
}

TEST_F(TreePackerTest, AShadowCopyTakesTheBeginningOfAFileThatGrows) {
  use_ = TreeUse::ShadowCopy;
  const std::string content(4 << 20, 'x');
  write_file(root_ / "log", content);
  const Packed packed = pack(
      {}, {}, [this](const TarEntry&) { std::ofstream(path("log"), std::ios::app) << "more"; });
  ASSERT_TRUE(packed.outcome.has_value()) << packed.problem();
  EXPECT_EQ(packed.entries.at("log").content, content);
}

TEST_F(TreePackerTest, AShadowCopyFillsAFileThatShrinksWithZerosAndReportsIt) {
  use_ = TreeUse::ShadowCopy;
  const std::size_t size = 4 << 20;
  write_file(root_ / "log", std::string(size, 'x'));
  const Packed packed = pack({}, {}, [this](const TarEntry&) { fs::resize_file(path("log"), 1); });
  ASSERT_TRUE(packed.outcome.has_value()) << packed.problem();
  const std::string& content = packed.entries.at("log").content;
  EXPECT_EQ(content.size(), size);
  const std::size_t read = content.find('\0');
  ASSERT_NE(read, std::string::npos);
  EXPECT_EQ(content.substr(0, read), std::string(read, 'x'));
  EXPECT_EQ(content.find_first_not_of('\0', read), std::string::npos);
  EXPECT_EQ(packed.outcome->entries, 1U);
  EXPECT_EQ(packed.outcome->first, path("log") + ": became shorter while it was copied");
}

// The entries of a directory are listed before they are opened.
TEST_F(TreePackerTest, AShadowCopyLeavesOutWhatVanishes) {
  use_ = TreeUse::ShadowCopy;
  for (int i = 0; i < 200; ++i) write_file(root_ / std::to_string(i), std::string(64 << 10, 'x'));
  bool is_first = true;
  const Packed packed = pack({}, {}, [&](const TarEntry& entry) {
    if (!std::exchange(is_first, false)) return;
    for (int i = 0; i < 200; ++i) {
      if (entry.path != std::to_string(i)) fs::remove(root_ / std::to_string(i));
    }
  });
  ASSERT_TRUE(packed.outcome.has_value()) << packed.problem();
  EXPECT_LT(packed.entries.size(), 200U);
}

// A sandbox that has the tool may leave all of this behind.
TEST_F(TreePackerTest, AShadowCopyLeavesOutWhatItCannotReadAndReportsIt) {
  use_ = TreeUse::ShadowCopy;
  write_file(root_ / "a", "readable");
  write_file(root_ / "closed/b", "x");
  write_file(root_ / "secret", "x");
  ASSERT_EQ(::chmod(path("secret").c_str(), 0), 0);
  ASSERT_EQ(::chmod(path("closed").c_str(), 0), 0);
  ASSERT_EQ(::chmod(root_.c_str(), 0755), 0);
  in_packer_ = [] { ::setfsuid(65534); };  // of its thread only; root would read everything
  const Packed packed = pack();
  ASSERT_TRUE(packed.outcome.has_value()) << packed.problem();
  EXPECT_EQ(packed.names(), "a ");
  EXPECT_EQ(packed.outcome->entries, 2U);
  const bool is_closed_first = packed.outcome->first.starts_with(path("closed"));
  EXPECT_EQ(packed.outcome->first,
            path(is_closed_first ? "closed" : "secret") + ": Permission denied");
}

TEST_F(TreePackerTest, AShadowCopyLeavesOutWhatIsTooDeep) {
  use_ = TreeUse::ShadowCopy;
  write_file(root_ / "x/y/z/file", "x");
  const Packed packed = pack({}, {.depth = 2});
  ASSERT_TRUE(packed.outcome.has_value()) << packed.problem();
  EXPECT_EQ(packed.names(), "x x/y x/y/z ");
  EXPECT_EQ(packed.outcome->entries, 1U);
  EXPECT_EQ(packed.outcome->first, path("x/y/z") + ": deeper than 2 directories, so it is empty");
}

TEST_F(TreePackerTest, AShadowCopyLeavesOutWhatIsBeyondItsLimits) {
  use_ = TreeUse::ShadowCopy;
  for (const char* name : {"a", "b", "d/e"}) write_file(root_ / name, "x");
  const Packed few = pack({}, {.entries = 1});
  ASSERT_TRUE(few.outcome.has_value()) << few.problem();
  EXPECT_EQ(few.entries.size(), 1U);
  EXPECT_GE(few.outcome->entries, 1U);
  EXPECT_TRUE(few.outcome->first.ends_with(": beyond 1 entries")) << few.outcome->first;

  progress_.entries = 0;
  progress_.bytes = 0;
  write_file(root_ / "large", std::string(1000, 'x'));
  const Packed small = pack({}, {.bytes = 999});
  ASSERT_TRUE(small.outcome.has_value()) << small.problem();
  EXPECT_EQ(small.names(), "a b d d/e ");
  EXPECT_EQ(small.outcome->first, path("large") + ": the copy would have more than 999 bytes");
}

}  // namespace
}  // namespace agbox
