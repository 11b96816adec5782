// SPDX-License-Identifier: Apache-2.0
#include "execlog/exec_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <fstream>
#include <optional>

#include "unit/temp_directory.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

class RemoveExecLogDirectoryTest : public testing::Test {
 protected:
  fs::path directory() const { return root_.path() / "box-1"; }

  static void make_file(const fs::path& path) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "x";
    ASSERT_TRUE(fs::exists(path));
  }
  std::ptrdiff_t files() const {
    if (!fs::exists(directory())) return 0;
    return std::ranges::count_if(fs::recursive_directory_iterator(directory()),
                                 [](const auto& entry) { return !entry.is_directory(); });
  }
  // The most files that went in one turn of the loop.
  std::ptrdiff_t remove() {
    boost::asio::io_context io;
    boost::asio::io_context blocking;
    const auto keep_running = boost::asio::make_work_guard(blocking);
    std::optional<Result<>> result;
    boost::asio::co_spawn(io, remove_exec_log_directory(blocking.get_executor(), directory()),
                          [&](const std::exception_ptr& failure, Result<> removed) {
                            if (failure) std::rethrow_exception(failure);
                            result = std::move(removed);
                          });
    std::ptrdiff_t most = 0;
    for (std::ptrdiff_t before = files(); io.poll_one() + blocking.poll_one() > 0;) {
      const std::ptrdiff_t after = files();
      most = std::max(most, before - after);
      before = after;
    }
    EXPECT_TRUE(result && result->has_value());
    return most;
  }

  TempDirectory root_;
};

TEST_F(RemoveExecLogDirectoryTest, TakesAFewFilesAtATimeHoweverDeepTheyLie) {
  for (int i = 0; i < 100; ++i) {
    const std::string name = std::to_string(i) + ".stdout.log";
    make_file(directory() / name);
    make_file(directory() / "logs" / "more" / name);
    make_file(directory() / "execs" / std::to_string(i) / name);
  }
  EXPECT_EQ(files(), 300);
  EXPECT_LE(remove(), 64);
  EXPECT_FALSE(fs::exists(directory()));
  EXPECT_EQ(remove(), 0) << "the second time is not an error";
}

TEST_F(RemoveExecLogDirectoryTest, GoesThroughNoLink) {
  make_file(root_.path() / "others" / "precious");
  fs::create_directories(directory() / "logs");
  fs::create_directory_symlink(root_.path() / "others", directory() / "logs" / "link");
  fs::create_symlink("nowhere", directory() / "dangling");
  remove();
  EXPECT_FALSE(fs::exists(directory()));
  EXPECT_TRUE(fs::exists(root_.path() / "others" / "precious"));
}

// --- the directory of a sandbox ---

class MakeExecLogDirectoryTest : public testing::Test {
 protected:
  MakeExecLogDirectoryTest() { created_with_.set_exec_output_root(root_.path().string()); }

  Result<fs::path> make() { return make_exec_log_directory(created_with_, "box-1"); }
  static fs::perms mode(const fs::path& path) { return fs::symlink_status(path).permissions(); }
  void expect_refused(const std::string& words) {
    const auto made = make();
    ASSERT_FALSE(made.has_value());
    EXPECT_THAT(made.error().message(), testing::HasSubstr(temp_directory_.string()));
    EXPECT_THAT(made.error().message(), testing::HasSubstr(words));
  }

  TempDirectory root_;
  fs::path temp_directory_ = root_.path() / "box-1";
  store::v1::CreatedWith created_with_;
};

TEST_F(MakeExecLogDirectoryTest, IsForUsAloneAndMayBeThereAlready) {
  EXPECT_EQ(make().value(), temp_directory_);
  EXPECT_EQ(mode(temp_directory_), fs::perms::owner_all);
  std::ofstream(temp_directory_ / "kept") << "x";
  EXPECT_EQ(make().value(), temp_directory_);
  EXPECT_TRUE(fs::exists(temp_directory_ / "kept"));
}

TEST_F(MakeExecLogDirectoryTest, IsClosedToOthersWhereItWasOpen) {
  fs::create_directory(temp_directory_);
  fs::permissions(temp_directory_, fs::perms::all);
  ASSERT_TRUE(make().has_value());
  EXPECT_EQ(mode(temp_directory_), fs::perms::owner_all);
}

TEST_F(MakeExecLogDirectoryTest, IsNoSymbolicLink) {
  const fs::path elsewhere = root_.path() / "elsewhere";
  fs::create_directory(elsewhere);
  fs::permissions(elsewhere, fs::perms::all);
  fs::create_symlink(elsewhere, temp_directory_);
  expect_refused("move it away");
  EXPECT_EQ(mode(elsewhere), fs::perms::all);
}

TEST_F(MakeExecLogDirectoryTest, IsNoFile) {
  std::ofstream(temp_directory_) << "mine";
  expect_refused("something that is not a directory is at");
}

TEST_F(MakeExecLogDirectoryTest, OfAnotherUserIsRefused) {
  if (::geteuid() != 0) {  // who cannot give a directory away finds one of root's
    created_with_.set_exec_output_root("/");
    temp_directory_ = "/usr";
    EXPECT_THAT(make_exec_log_directory(created_with_, "usr").error().message(),
                testing::HasSubstr("/usr belongs to user 0"));
    return;
  }
  fs::create_directory(temp_directory_);
  ASSERT_EQ(::chown(temp_directory_.c_str(), 12345, 12345), 0);
  expect_refused("belongs to user 12345, not to user 0");
}

}  // namespace
}  // namespace agbox
