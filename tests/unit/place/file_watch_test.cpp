// SPDX-License-Identifier: Apache-2.0
// What is done to a file in the ways in which programs replace configuration, and that it is told.
#include "place/local/file_watch.h"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>

#include "base/text_file.h"
#include "support/test_loop.h"
#include "unit/temp_folder.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

class FileWatchTest : public testing::Test {
 protected:
  ~FileWatchTest() override {
    if (!watching_) return;
    watching_->cancel();
    loop_.run_until([&] { return watching_->is_done(); });
    EXPECT_TRUE(watching_->result().has_value());
  }

  void watch(const fs::path& file) {
    file_ = file;
    watching_ = loop_.spawn(watch_files({file}, [this] {
      ++tellings_;
      seen_ = read_text_file(file_).value_or("nothing");
    }));
    loop_.run_until([&] { return tellings_ == 1; });
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

  TempFolder folder_;
  TestLoop loop_;
  fs::path file_;
  int tellings_ = 0;
  std::string seen_;
  std::optional<TestTask<Result<>>> watching_;
};

TEST_F(FileWatchTest, ItIsToldOnceItWatches) {
  write(folder_.path() / "a", "1");
  watch(folder_.path() / "a");
  EXPECT_EQ(seen_, "1");
}

TEST_F(FileWatchTest, AFileThatIsWrittenAnewInPlace) {
  write(folder_.path() / "a", "1");
  watch(folder_.path() / "a");
  write(folder_.path() / "a", "2");
  wait_for("2");
}

TEST_F(FileWatchTest, AFileThatIsRenamedOverAgainAndAgain) {
  write(folder_.path() / "a", "1");
  watch(folder_.path() / "a");
  for (const std::string content : {"2", "3", "4"}) {
    rename_over(folder_.path() / "a", content);
    wait_for(content);
  }
}

TEST_F(FileWatchTest, AFileThatGoesAndComes) {
  write(folder_.path() / "a", "1");
  watch(folder_.path() / "a");
  fs::remove(folder_.path() / "a");
  wait_for("nothing");
  write(folder_.path() / "a", "2");
  wait_for("2");
}

TEST_F(FileWatchTest, TheTargetOfALink) {
  fs::create_directories(folder_.path() / "run/resolve");
  write(folder_.path() / "run/resolve/stub", "1");
  fs::create_symlink("run/resolve/stub", folder_.path() / "a");
  watch(folder_.path() / "a");
  EXPECT_EQ(seen_, "1");
  rename_over(folder_.path() / "run/resolve/stub", "2");
  wait_for("2");
}

TEST_F(FileWatchTest, ALinkThatPointsElsewhere) {
  for (const std::string name : {"stub", "real"}) {
    fs::create_directories(folder_.path() / name);
    write(folder_.path() / name / "list", name);
  }
  fs::create_symlink(folder_.path() / "stub/list", folder_.path() / "a");
  watch(folder_.path() / "a");
  link_over(folder_.path() / "a", folder_.path() / "real/list");
  wait_for("real");
  // What it pointed to before counts no more, what it points to now does.
  rename_over(folder_.path() / "stub/list", "late");
  rename_over(folder_.path() / "real/list", "2");
  wait_for("2");
  // A file in its place, as where such a service is given up.
  rename_over(folder_.path() / "a", "3");
  wait_for("3");
}

TEST_F(FileWatchTest, AFolderOnTheWayThatIsALink) {
  for (const std::string name : {"one", "two"}) {
    fs::create_directories(folder_.path() / name);
    write(folder_.path() / name / "list", name);
  }
  fs::create_symlink("one", folder_.path() / "current");
  watch(folder_.path() / "current/../current/list");
  EXPECT_EQ(seen_, "one");
  link_over(folder_.path() / "current", "two");
  wait_for("two");
}

TEST_F(FileWatchTest, FoldersThatAreMadeLaterAndRemovedAndMadeAgain) {
  const fs::path file = folder_.path() / "run/systemd/resolve/list";
  watch(file);
  EXPECT_EQ(seen_, "nothing");
  fs::create_directories(file.parent_path());
  write(file, "1");
  wait_for("1");
  fs::remove_all(folder_.path() / "run");
  wait_for("nothing");
  fs::create_directories(file.parent_path());
  write(file, "2");
  wait_for("2");
}

TEST_F(FileWatchTest, ALinkToItselfIsAFileThatIsNotThere) {
  fs::create_symlink("a", folder_.path() / "a");
  watch(folder_.path() / "a");
  EXPECT_EQ(seen_, "nothing");
  rename_over(folder_.path() / "a", "1");
  wait_for("1");
}

TEST_F(FileWatchTest, OtherFilesOfTheFolderAreNothing) {
  write(folder_.path() / "a", "1");
  watch(folder_.path() / "a");
  write(folder_.path() / "b", "1");
  rename_over(folder_.path() / "b", "2");
  fs::remove(folder_.path() / "b");
  loop_.run_until_idle();
  EXPECT_EQ(tellings_, 1);
  write(folder_.path() / "a", "2");
  wait_for("2");
  EXPECT_EQ(tellings_, 2);
}

}  // namespace
}  // namespace agbox
