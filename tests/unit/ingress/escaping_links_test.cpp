// SPDX-License-Identifier: Apache-2.0
#include "ingress/escaping_links.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/unique_fd.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class EscapingLinks : public testing::Test {
 protected:
  EscapingLinks() { fs::create_directories(root_ / "a/b"); }

  EscapingLinkScan scan(const ScanLimits& limits = {}) {
    const UniqueFd fd(::open(root_.c_str(), O_PATH | O_CLOEXEC));
    return find_escaping_link(fd.get(), root_.string(), limits);
  }
  std::string found() {
    const auto result = scan();
    EXPECT_EQ(result.unsearched, "");
    return result.link.value_or("none");
  }
  std::string unsearched(const ScanLimits& limits = {}) {
    const auto result = scan(limits);
    EXPECT_EQ(result.link, std::nullopt);
    return result.unsearched;
  }
  void link(const std::string& name, const std::string& target) {
    fs::remove(root_ / name);
    fs::create_symlink(target, root_ / name);
  }

  TempDirectory temp_;
  const fs::path outside_ = fs::canonical(temp_.path());
  const fs::path root_ = outside_ / "tree";
};

TEST_F(EscapingLinks, AreThoseThatLeadOutOfTheTree) {
  std::ofstream(root_ / "a/file") << "x";
  for (const std::string& target :
       {std::string("b"), std::string("../a/file"), std::string("nowhere"), std::string("in"),
        std::string("./.."), root_.string(), (root_ / "a/file").string()}) {
    link("a/in", target);
    EXPECT_EQ(found(), "none") << target;
  }
  // The last stays inside, unless `b` becomes a link.
  for (const std::string& target :
       {std::string("../.."), std::string("../../tree"), std::string("/"),
        std::string("/etc/passwd"), outside_.string(), (root_ / "../x").string(),
        std::string("b/../../.."), std::string("b/../b")}) {
    link("a/out", target);
    EXPECT_EQ(found(), "a/out") << target;
  }
  fs::remove(root_ / "a/out");
  // By way of another link that is no escape by itself, seen from where it is.
  link("a/up", "..");
  link("a/b/through", "../up/../x");
  EXPECT_EQ(found(), "a/b/through");
}

TEST_F(EscapingLinks, OfOtherEntriesNoneIsOpened) {
  ASSERT_EQ(::mkfifo((root_ / "a/fifo").c_str(), 0600), 0);  // an open would hang
  fs::create_directory_symlink(outside_, root_ / "b");
  EXPECT_EQ(found(), "b");
}

TEST_F(EscapingLinks, TheEffortIsBounded) {
  EXPECT_EQ(unsearched({.entries = 1}), root_.string() + " has more than 1 entries");
  EXPECT_EQ(unsearched({.depth = 1}), (root_ / "a/b").string() + " is deeper than 1 directories");
  EXPECT_EQ(unsearched({.time = 0ms}), root_.string() + " took longer than 0 ms to search");
  EXPECT_EQ(unsearched({.entries = 2, .depth = 2}), "");
}

// What cannot be searched hides nothing of the rest.
TEST_F(EscapingLinks, AreFoundBesideWhatIsNotSearched) {
  link("z", "/etc/passwd");
  const auto result = scan({.depth = 1});
  EXPECT_EQ(result.link, "z");
  EXPECT_EQ(result.unsearched, "");
}

TEST_F(EscapingLinks, WhatCannotBeReadIsNamed) {
  fs::create_directories(root_ / "a/\x1b[31m");
  ASSERT_EQ(::chmod((root_ / "a/\x1b[31m").c_str(), 0), 0);
  const UniqueFd fd(::open(root_.c_str(), O_PATH | O_CLOEXEC));
  if (::geteuid() == 0) ::setfsuid(12345);  // root reads everything
  const auto result = find_escaping_link(fd.get(), root_.string());
  ::setfsuid(::geteuid());
  EXPECT_EQ(result.link, std::nullopt);
  EXPECT_EQ(result.unsearched, root_.string() + "/a/\\x1b[31m cannot be read: Permission denied");
}

// A directory that changes places with a link to the outside is entered as what it is, or not.
TEST_F(EscapingLinks, ARaceLeadsNowhere) {
  fs::create_directories(outside_ / "secret");
  fs::create_symlink("/", outside_ / "secret/out");
  fs::create_symlink(outside_ / "secret", outside_ / "link");
  std::atomic<bool> ends = false;
  std::thread racer([&] {
    while (!ends) {
      ::renameat2(AT_FDCWD, (root_ / "a/b").c_str(), AT_FDCWD, (outside_ / "link").c_str(),
                  RENAME_EXCHANGE);
    }
  });
  for (int round = 0; round < 500; ++round) {
    const auto result = scan();
    ASSERT_EQ(result.unsearched, "");
    // Never "a/b/out", which is outside.
    ASSERT_EQ(result.link.value_or("a/b"), "a/b");
  }
  ends = true;
  racer.join();
}

}  // namespace
}  // namespace agbox
