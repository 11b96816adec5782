// SPDX-License-Identifier: Apache-2.0
#include "ingress/escaping_links.h"

#include <fcntl.h>
#include <gmock/gmock.h>
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
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class EscapingLinks : public testing::Test {
 protected:
  EscapingLinks() { fs::create_directories(root_ / "a/b"); }

  Result<std::optional<std::string>> scan(const ScanLimits& limits = {}) {
    const UniqueFd fd(::open(root_.c_str(), O_PATH | O_CLOEXEC));
    return find_escaping_link(fd.get(), root_.string(), limits);
  }
  std::string found() {
    const auto result = scan();
    if (!result) return "error: " + result.error().message();
    return result->value_or("none");
  }
  std::string refusal(const ScanLimits& limits = {}) {
    const auto result = scan(limits);
    EXPECT_FALSE(result.has_value());
    return result ? "" : result.error().message();
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
  for (const std::string& target : {std::string("../.."), std::string("../../tree"),
                                    std::string("/"), std::string("/etc/passwd"), outside_.string(),
                                    (root_ / "../x").string(), std::string("b/../../..")}) {
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
  EXPECT_THAT(refusal({.entries = 1}), AllOf(StartsWith(root_.string() + " "),
                                             HasSubstr("has more than 1 entries; remove")));
  EXPECT_THAT(refusal({.depth = 1}),
              StartsWith((root_ / "a/b").string() + " is deeper than 1 directories; remove"));
  EXPECT_TRUE(scan({.entries = 2, .depth = 2}).has_value());
  // Each link is short, and takes long to resolve.
  link("a/0", std::string("b"));
  for (int i = 1; i < 30; ++i) link("a/" + std::to_string(i), std::to_string(i - 1) + "/../0");
  EXPECT_THAT(refusal({.lookups = 50}), HasSubstr("has too many symbolic links; remove"));
  EXPECT_EQ(found(), "none");
}

TEST_F(EscapingLinks, WhatCannotBeReadIsNamed) {
  fs::create_directories(root_ / "a/\x1b[31m");
  ASSERT_EQ(::chmod((root_ / "a/\x1b[31m").c_str(), 0), 0);
  const UniqueFd fd(::open(root_.c_str(), O_PATH | O_CLOEXEC));
  if (::geteuid() == 0) ::setfsuid(12345);  // root reads everything
  const auto result = find_escaping_link(fd.get(), root_.string());
  ::setfsuid(::geteuid());
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message(),
              HasSubstr("/a/\\x1b[31m cannot be read: Permission denied; change its "));
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
    ASSERT_TRUE(result.has_value()) << result.error().message();
    // Never "a/b/out", which is outside.
    ASSERT_TRUE(!*result || **result == "a/b") << **result;
  }
  ends = true;
  racer.join();
}

}  // namespace
}  // namespace agbox
