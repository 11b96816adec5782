// SPDX-License-Identifier: Apache-2.0
// What is done to a file in the ways in which programs replace configuration, and that it is told.
#include "place/local/file_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <string>

#include "base/kernel_budget.h"
#include "base/text_file.h"
#include "support/test_loop.h"
#include "unit/temp_directory.h"
#include "unit/without_inotify.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

class FileWatchTest : public testing::Test {
 protected:
  ~FileWatchTest() override {
    if (!watching_) return;
    watching_->cancel();
    loop_.run_until([&] { return watching_->is_done(); });
  }

  void watch(const fs::path& file) {
    file_ = file;
    watching_ = loop_.spawn(watch_files({file}, [this] {
      ++notifications_;
      seen_ = read_text_file(file_).value_or("nothing");
    }));
    loop_.run_until([&] { return notifications_ == 1; });
  }
  void wait_for(const std::string& content) {
    loop_.run_until([&] { return seen_ == content; });
  }

  static void write(const fs::path& file, const std::string& content) {
    std::ofstream(file) << content;
  }
  // As careful programs do it: whoever opens the name has the old file or the new one.
  void rename_over(const fs::path& file, const std::string& content) {
    const fs::path made = file.parent_path() / ".new";
    write(made, content);
    fs::rename(made, file);
  }
  void link_over(const fs::path& file, const fs::path& target) {
    const fs::path made = file.parent_path() / ".new";
    fs::create_symlink(target, made);
    fs::rename(made, file);
  }

  TempDirectory temp_directory_;
  TestLoop loop_;
  fs::path file_;
  int notifications_ = 0;
  std::string seen_;
  std::optional<TestTask<bool>> watching_;
};

TEST_F(FileWatchTest, ItIsToldOnceItWatches) {
  write(temp_directory_.path() / "a", "1");
  watch(temp_directory_.path() / "a");
  EXPECT_EQ(seen_, "1");
}

TEST_F(FileWatchTest, AFileThatIsWrittenAnewInPlace) {
  write(temp_directory_.path() / "a", "1");
  watch(temp_directory_.path() / "a");
  write(temp_directory_.path() / "a", "2");
  wait_for("2");
}

TEST_F(FileWatchTest, AFileThatIsRenamedOverAgainAndAgain) {
  write(temp_directory_.path() / "a", "1");
  watch(temp_directory_.path() / "a");
  for (const std::string content : {"2", "3", "4"}) {
    rename_over(temp_directory_.path() / "a", content);
    wait_for(content);
  }
}

TEST_F(FileWatchTest, AFileThatGoesAndComes) {
  write(temp_directory_.path() / "a", "1");
  watch(temp_directory_.path() / "a");
  fs::remove(temp_directory_.path() / "a");
  wait_for("nothing");
  write(temp_directory_.path() / "a", "2");
  wait_for("2");
}

TEST_F(FileWatchTest, TheTargetOfALink) {
  fs::create_directories(temp_directory_.path() / "run/resolve");
  write(temp_directory_.path() / "run/resolve/stub", "1");
  fs::create_symlink("run/resolve/stub", temp_directory_.path() / "a");
  watch(temp_directory_.path() / "a");
  EXPECT_EQ(seen_, "1");
  rename_over(temp_directory_.path() / "run/resolve/stub", "2");
  wait_for("2");
}

TEST_F(FileWatchTest, ALinkThatPointsElsewhere) {
  for (const std::string name : {"stub", "real"}) {
    fs::create_directories(temp_directory_.path() / name);
    write(temp_directory_.path() / name / "list", name);
  }
  fs::create_symlink(temp_directory_.path() / "stub/list", temp_directory_.path() / "a");
  watch(temp_directory_.path() / "a");
  link_over(temp_directory_.path() / "a", temp_directory_.path() / "real/list");
  wait_for("real");
  // What it pointed to before counts no more, what it points to now does.
  rename_over(temp_directory_.path() / "stub/list", "late");
  rename_over(temp_directory_.path() / "real/list", "2");
  wait_for("2");
  // A file in its place, as where such a service is given up.
  rename_over(temp_directory_.path() / "a", "3");
  wait_for("3");
}

TEST_F(FileWatchTest, ADirectoryOnTheWayThatIsALink) {
  for (const std::string name : {"one", "two"}) {
    fs::create_directories(temp_directory_.path() / name);
    write(temp_directory_.path() / name / "list", name);
  }
  fs::create_symlink("one", temp_directory_.path() / "current");
  watch(temp_directory_.path() / "current/../current/list");
  EXPECT_EQ(seen_, "one");
  link_over(temp_directory_.path() / "current", "two");
  wait_for("two");
}

TEST_F(FileWatchTest, DirectoriesThatAreMadeLaterAndRemovedAndMadeAgain) {
  const fs::path file = temp_directory_.path() / "run/systemd/resolve/list";
  watch(file);
  EXPECT_EQ(seen_, "nothing");
  fs::create_directories(file.parent_path());
  write(file, "1");
  wait_for("1");
  fs::remove_all(temp_directory_.path() / "run");
  wait_for("nothing");
  fs::create_directories(file.parent_path());
  write(file, "2");
  wait_for("2");
}

TEST_F(FileWatchTest, ALinkToItselfIsAFileThatIsNotThere) {
  fs::create_symlink("a", temp_directory_.path() / "a");
  watch(temp_directory_.path() / "a");
  EXPECT_EQ(seen_, "nothing");
  rename_over(temp_directory_.path() / "a", "1");
  wait_for("1");
}

TEST_F(FileWatchTest, OtherFilesOfTheDirectoryAreNothing) {
  write(temp_directory_.path() / "a", "1");
  watch(temp_directory_.path() / "a");
  write(temp_directory_.path() / "b", "1");
  rename_over(temp_directory_.path() / "b", "2");
  fs::remove(temp_directory_.path() / "b");
  loop_.run_until_idle();
  EXPECT_EQ(notifications_, 1);
  write(temp_directory_.path() / "a", "2");
  wait_for("2");
  EXPECT_EQ(notifications_, 2);
}

TEST_F(FileWatchTest, WhileTheKernelRefusesToWatchChangesAreFoundLater) {
  for (const char* limit : {"max_inotify_instances", "max_inotify_watches"}) {
    SCOPED_TRACE(limit);
    expect_to_hold_without(limit, [this] {
      write(temp_directory_.path() / "a", "1");
      watch(temp_directory_.path() / "a");
      EXPECT_EQ(seen_, "1");
      write(temp_directory_.path() / "a", "2");
      wait_for("2");
      EXPECT_EQ(refused_within(std::chrono::seconds(60)).size(), 1U);
    });
  }
}

}  // namespace
}  // namespace agbox
