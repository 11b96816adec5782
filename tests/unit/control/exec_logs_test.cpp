// SPDX-License-Identifier: Apache-2.0
#include "control/exec_logs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
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
    std::optional<Result<>> result;
    boost::asio::co_spawn(io, remove_exec_log_folder(folder()),
                          [&](const std::exception_ptr& failure, Result<> removed) {
                            if (failure) std::rethrow_exception(failure);
                            result = std::move(removed);
                          });
    std::ptrdiff_t most = 0;
    for (std::ptrdiff_t before = files(); io.run_one() > 0;) {
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

}  // namespace
}  // namespace agbox
