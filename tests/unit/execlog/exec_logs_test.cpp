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

#include "unit/temp_folder.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

class RemoveExecLogFolderTest : public testing::Test {
 protected:
  fs::path folder() const { return root_.path() / "box-1"; }

  static void make_file(const fs::path& path) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "x";
    ASSERT_TRUE(fs::exists(path));
  }
  std::ptrdiff_t files() const {
    if (!fs::exists(folder())) return 0;
    return std::ranges::count_if(fs::recursive_directory_iterator(folder()),
                                 [](const auto& entry) { return !entry.is_directory(); });
  }
  // The most files that went in one turn of the loop.
  std::ptrdiff_t remove() {
    boost::asio::io_context io;
    boost::asio::io_context blocking;
    const auto keep_running = boost::asio::make_work_guard(blocking);
    std::optional<Result<>> result;
    boost::asio::co_spawn(io, remove_exec_log_folder(blocking.get_executor(), folder()),
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

  TempFolder root_;
};

TEST_F(RemoveExecLogFolderTest, TakesAFewFilesAtATimeHoweverDeepTheyLie) {
  for (int i = 0; i < 100; ++i) {
    const std::string name = std::to_string(i) + ".stdout.log";
    make_file(folder() / name);
    make_file(folder() / "logs" / "more" / name);
    make_file(folder() / "execs" / std::to_string(i) / name);
  }
  EXPECT_EQ(files(), 300);
  EXPECT_LE(remove(), 64);
  EXPECT_FALSE(fs::exists(folder()));
  EXPECT_EQ(remove(), 0) << "the second time is not an error";
}

TEST_F(RemoveExecLogFolderTest, GoesThroughNoLink) {
  make_file(root_.path() / "others" / "precious");
  fs::create_directories(folder() / "logs");
  fs::create_directory_symlink(root_.path() / "others", folder() / "logs" / "link");
  fs::create_symlink("nowhere", folder() / "dangling");
  remove();
  EXPECT_FALSE(fs::exists(folder()));
  EXPECT_TRUE(fs::exists(root_.path() / "others" / "precious"));
}

// --- the folder of a sandbox ---

class MakeExecLogFolderTest : public testing::Test {
 protected:
  MakeExecLogFolderTest() { created_with_.set_exec_output_root(root_.path().string()); }

  Result<fs::path> make() { return make_exec_log_folder(created_with_, "box-1"); }
  static fs::perms mode(const fs::path& path) { return fs::symlink_status(path).permissions(); }
  void expect_refused(const std::string& words) {
    const auto made = make();
    ASSERT_FALSE(made.has_value());
    EXPECT_THAT(made.error().message(), testing::HasSubstr(folder_.string()));
    EXPECT_THAT(made.error().message(), testing::HasSubstr(words));
  }

  TempFolder root_;
  fs::path folder_ = root_.path() / "box-1";
  store::v1::CreatedWith created_with_;
};

TEST_F(MakeExecLogFolderTest, IsForUsAloneAndMayBeThereAlready) {
  EXPECT_EQ(make().value(), folder_);
  EXPECT_EQ(mode(folder_), fs::perms::owner_all);
  std::ofstream(folder_ / "kept") << "x";
  EXPECT_EQ(make().value(), folder_);
  EXPECT_TRUE(fs::exists(folder_ / "kept"));
}

TEST_F(MakeExecLogFolderTest, IsClosedToOthersWhereItWasOpen) {
  fs::create_directory(folder_);
  fs::permissions(folder_, fs::perms::all);
  ASSERT_TRUE(make().has_value());
  EXPECT_EQ(mode(folder_), fs::perms::owner_all);
}

TEST_F(MakeExecLogFolderTest, IsNoSymbolicLink) {
  const fs::path elsewhere = root_.path() / "elsewhere";
  fs::create_directory(elsewhere);
  fs::permissions(elsewhere, fs::perms::all);
  fs::create_symlink(elsewhere, folder_);
  expect_refused("move it away");
  EXPECT_EQ(mode(elsewhere), fs::perms::all);
}

TEST_F(MakeExecLogFolderTest, IsNoFile) {
  std::ofstream(folder_) << "mine";
  expect_refused("something that is not a folder is at");
}

TEST_F(MakeExecLogFolderTest, OfAnotherUserIsRefused) {
  if (::geteuid() != 0) {  // who cannot give a folder away finds one of root's
    created_with_.set_exec_output_root("/");
    folder_ = "/usr";
    EXPECT_THAT(make_exec_log_folder(created_with_, "usr").error().message(),
                testing::HasSubstr("/usr belongs to user 0"));
    return;
  }
  fs::create_directory(folder_);
  ASSERT_EQ(::chown(folder_.c_str(), 12345, 12345), 0);
  expect_refused("belongs to user 12345, not to user 0");
}

}  // namespace
}  // namespace agbox
