// SPDX-License-Identifier: Apache-2.0
#include "execlog/spare_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <fstream>
#include <optional>
#include <thread>

#include "unit/temp_directory.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

class SpareFilesTest : public testing::Test {
 protected:
  SpareFilesTest() {
    fs::create_directories(sandbox_);
    fd_.reset(::open(sandbox_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    spares_.emplace(temp_directory_.path(), "one");
  }

  UniqueFd take(SpareFiles& spares, const std::string& name) {
    auto taken = boost::asio::post(
        spares.executor(), boost::asio::use_future([&] { return spares.take(fd_.get(), name); }));
    return taken.get();
  }
  // The first one is asked for in vain: it begins the making.
  UniqueFd take_in_time(const std::string& name) { return take_in_time(*spares_, name); }
  UniqueFd take_in_time(SpareFiles& spares, const std::string& name) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < give_up) {
      if (UniqueFd taken = take(spares, name)) return taken;
      std::this_thread::yield();
    }
    return {};
  }
  std::size_t spares_on_disk() const {
    if (!fs::exists(spare_directory_)) return 0;
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(spare_directory_), {}));
  }

  TempDirectory temp_directory_;
  fs::path sandbox_ = temp_directory_.path() / "box-1";
  fs::path spare_directory_ = temp_directory_.path() / ".spare-one";
  UniqueFd fd_;
  std::optional<SpareFiles> spares_;
};

TEST_F(SpareFilesTest, NothingIsMadeBeforeSomebodyAsks) {
  EXPECT_EQ(spares_on_disk(), 0U);
  spares_.reset();
}

TEST_F(SpareFilesTest, ATakenOneIsAnEmptyFileOfItsNameForAppending) {
  const UniqueFd taken = take_in_time("one.stdout.log");
  ASSERT_TRUE(taken);
  struct stat found{};
  ASSERT_EQ(::stat((sandbox_ / "one.stdout.log").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600U);
  EXPECT_EQ(found.st_nlink, 1U);
  EXPECT_EQ(found.st_size, 0);
  struct stat open{};
  ASSERT_EQ(::fstat(taken.get(), &open), 0);
  EXPECT_EQ(open.st_ino, found.st_ino);
  EXPECT_NE(::fcntl(taken.get(), F_GETFL) & O_APPEND, 0);
}

TEST_F(SpareFilesTest, WhatIsThereIsNeverReplaced) {
  ASSERT_TRUE(take_in_time("first"));
  std::ofstream(sandbox_ / "kept") << "precious";
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(take(*spares_, "kept"));
  EXPECT_EQ(fs::file_size(sandbox_ / "kept"), 8U);
}

TEST_F(SpareFilesTest, ManyAreTakenOnceEach) {
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(take_in_time(std::to_string(i)));
  EXPECT_EQ(std::distance(fs::directory_iterator(sandbox_), {}), 400);
}

TEST_F(SpareFilesTest, TheEndLeavesNoneAndTheNextBeginningNoneOfOthers) {
  ASSERT_TRUE(take_in_time("first"));
  spares_.reset();
  EXPECT_EQ(spares_on_disk(), 0U);
  fs::create_directory(spare_directory_);
  std::ofstream(spare_directory_ / "left-by-a-crash") << "";
  spares_.emplace(temp_directory_.path(), "one");
  ASSERT_TRUE(take_in_time("second"));
  EXPECT_FALSE(fs::exists(spare_directory_ / "left-by-a-crash"));
}

TEST_F(SpareFilesTest, ADirectoryThatAnotherProcessRemovedIsMadeAgain) {
  ASSERT_TRUE(take_in_time("first"));
  // All 128 but the one that was taken: no more are made.
  while (spares_on_disk() < 127) std::this_thread::yield();
  fs::remove_all(spare_directory_);
  EXPECT_TRUE(take_in_time("second"));
  // And again while they are being made: the directory may fill up while it is emptied.
  std::error_code problem;
  do {
    fs::remove_all(spare_directory_, problem);
  } while (problem == std::errc::directory_not_empty);
  EXPECT_FALSE(problem) << problem.message();
  EXPECT_TRUE(take_in_time("third"));
}

TEST_F(SpareFilesTest, TwoDaemonsWithOneRootLeaveEachOtherAlone) {
  ASSERT_TRUE(take_in_time("first"));
  std::ofstream(spare_directory_ / "of-the-first-daemon") << "";
  {
    SpareFiles other(temp_directory_.path(), "other");
    ASSERT_TRUE(take_in_time(other, "second"));
  }
  EXPECT_TRUE(fs::exists(spare_directory_ / "of-the-first-daemon"));
}

TEST_F(SpareFilesTest, WhereNoneCanBeMadeTheCallerIsOnItsOwn) {
  std::ofstream(temp_directory_.path() / "file") << "not a directory";
  spares_.emplace(temp_directory_.path() / "file", "one");
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(take(*spares_, "none"));
}

}  // namespace
}  // namespace agbox
