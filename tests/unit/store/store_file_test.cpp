// SPDX-License-Identifier: Apache-2.0
#include "store/store_file.h"

#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "base/failpoint.h"
#include "store/schema.h"
#include "unit/store/store_fixture.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class StoreFileTest : public StoreTest {
 protected:
  StoreFileTest() { fs::create_directories(path_.parent_path()); }

  std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void put(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(path_.parent_path())) {
      all.push_back(entry.path().filename());
    }
    return all;
  }
  static void run_sql(const fs::path& path, const std::string& sql) {
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(handle);
    sqlite3_close(handle);
  }
  // Opening fails and changes nothing.
  std::string refusal() {
    const std::string before = content();
    const auto opened = Store::open(options());
    EXPECT_FALSE(opened.has_value());
    EXPECT_EQ(content(), before);
    EXPECT_THAT(names(), ElementsAre("ids.db"));
    return opened ? "" : opened.error().message();
  }
};

TEST_F(StoreFileTest, ANewStoreIsPrivateAndLeavesNoOtherFileBehind) {
  fs::remove_all(path_.parent_path());
  open();
  struct stat found{};
  ASSERT_EQ(::stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600U);
  ASSERT_EQ(::stat(path_.parent_path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0700U);
  ASSERT_EQ(::stat((path_.string() + ".ballast").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600U);
  EXPECT_GE(found.st_blocks * 512, 64 << 10);
  store_.reset();
  EXPECT_THAT(names(), UnorderedElementsAre("ids.db", "ids.db.ballast"));
}

TEST_F(StoreFileTest, EveryStoreHasItsOwnInstanceId) {
  open();
  const std::string first = store().instance_id();
  store_.reset();
  fs::remove_all(path_.parent_path());
  open();
  EXPECT_NE(store().instance_id(), first);
}

TEST_F(StoreFileTest, ASecondOpenIsRefused) {
  open();
  const auto second = Store::open(options());
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message(),
              AllOf(HasSubstr(path_.string()), HasSubstr("is in use by another agboxd")));
  EXPECT_TRUE(append(create("s-01")));  // the first is not affected
  store_.reset();
  EXPECT_TRUE(Store::open(options()).has_value());
}

TEST_F(StoreFileTest, OneOfManyConcurrentStartsGetsIt) {
  constexpr int kOpeners = 20;
  std::vector<std::unique_ptr<Store>> stores(kOpeners);
  std::vector<std::thread> threads;
  for (int i = 0; i < kOpeners; ++i) {
    threads.emplace_back([&, i] {
      auto opened = Store::open(options());
      if (opened) {
        stores[static_cast<std::size_t>(i)] = std::move(*opened);
      } else {
        EXPECT_THAT(opened.error().message(), HasSubstr("is in use by another agboxd"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::ranges::count_if(stores, [](const auto& store) { return store != nullptr; }), 1);
  stores.clear();
  EXPECT_THAT(names(), UnorderedElementsAre("ids.db", "ids.db.ballast"));
}

TEST_F(StoreFileTest, AFileThatIsNotADatabaseIsRefused) {
  put("just some text");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("is not a store of agboxd"), HasSubstr("left untouched"),
                               HasSubstr("move it away")));
  put("");
  EXPECT_THAT(refusal(), HasSubstr("is not a store of agboxd"));
  put(std::string(100, '\0'));
  EXPECT_THAT(refusal(), HasSubstr("is not a store of agboxd"));
}

TEST_F(StoreFileTest, ABboltStoreIsRefusedByName) {
  put(std::string(16, '\0') + "\xED\xDA\x0C\xED" + std::string(4076, '\0'));
  EXPECT_THAT(refusal(), HasSubstr("is a bbolt database"));
}

TEST_F(StoreFileTest, AnotherProgramsDatabaseIsRefused) {
  run_sql(path_, "CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)");
  EXPECT_THAT(refusal(), HasSubstr("is a SQLite database of another program"));
  fs::remove(path_);
  run_sql(path_, "PRAGMA journal_mode = WAL; PRAGMA application_id = 77; CREATE TABLE theirs (a)");
  EXPECT_THAT(refusal(), HasSubstr("is a SQLite database of another program"));
}

TEST_F(StoreFileTest, ANewerSchemaIsRefused) {
  open();
  store_.reset();
  fs::remove(path_.string() + ".ballast");
  run_sql(path_, "PRAGMA user_version = 99");
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("has schema 99"), HasSubstr("newer agboxd"),
                    HasSubstr("ids.db.before-" + std::to_string(kStoreSchemaVersion + 1))));
}

TEST_F(StoreFileTest, ANewerSchemaThatIsStillInTheLogIsRefusedAndStays) {
  open();
  store_.reset();
  // A newer daemon that was killed: its schema number is in the log only.
  EXPECT_EXIT(
      {
        sqlite3* handle = nullptr;
        sqlite3_open(path_.c_str(), &handle);
        sqlite3_exec(handle, "PRAGMA user_version = 99", nullptr, nullptr, nullptr);
        ::raise(SIGKILL);
      },
      testing::KilledBySignal(SIGKILL), "");
  const auto log_size = fs::file_size(path_.string() + "-wal");
  EXPECT_GT(log_size, 0U);
  for (int i = 0; i < 2; ++i) {
    const auto opened = Store::open(options());
    ASSERT_FALSE(opened.has_value());
    EXPECT_THAT(opened.error().message(), HasSubstr("has schema 99"));
    EXPECT_EQ(fs::file_size(path_.string() + "-wal"), log_size);
  }
}

TEST_F(StoreFileTest, ASymbolicLinkIsNotFollowed) {
  const fs::path target = temp_directory_ / "target";
  fs::create_symlink(target, path_);
  auto opened = Store::open(options());
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message(), HasSubstr("it is a symbolic link"));
  EXPECT_FALSE(fs::exists(target));
  std::ofstream(target) << "theirs";
  opened = Store::open(options());
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(fs::file_size(target), 6U);
}

TEST_F(StoreFileTest, ADirectoryOrFifoAtThePathIsRefused) {
  fs::create_directory(path_);
  auto opened = Store::open(options());
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message(), HasSubstr("it is a directory"));
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  opened = Store::open(options());
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message(), HasSubstr("is not a regular file"));
}

TEST_F(StoreFileTest, AFileInPlaceOfADirectoryIsNamed) {
  fs::remove_all(path_.parent_path());
  std::ofstream(path_.parent_path()) << "in the way";
  const auto opened = Store::open(options());
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message(), HasSubstr("not a directory"));
}

TEST_F(StoreFileTest, ALogWithoutItsStoreIsNotUsed) {
  std::ofstream(path_.string() + "-wal") << "the log of a store that is gone";
  const auto opened = Store::open(options());
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message(), HasSubstr("is missing, but its log"));
  EXPECT_THAT(names(), ElementsAre("ids.db-wal"));
}

TEST_F(StoreFileTest, AnInterruptedCreationIsCleanedUp) {
  for (const char* suffix : {".new", ".new-journal", ".new-wal", ".new-shm"}) {
    std::ofstream(path_.string() + suffix) << "unfinished";
  }
  open();
  EXPECT_TRUE(append(create("s-01")));
  store_.reset();
  EXPECT_THAT(names(), UnorderedElementsAre("ids.db", "ids.db.ballast"));
  std::ofstream(path_.string() + ".new") << "unfinished";
  open();
  store_.reset();
  EXPECT_THAT(names(), UnorderedElementsAre("ids.db", "ids.db.ballast"));
}

TEST_F(StoreFileTest, ADamagedDatabaseIsReported) {
  open();
  ASSERT_TRUE(append(create("s-01")));
  store_.reset();
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4096);
  file << std::string(fs::file_size(path_) - 4096, '\xA5');
  file.close();
  const auto opened = Store::open(options());
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message(), AllOf(HasSubstr(path_.string()), HasSubstr("malformed")));
}

TEST(StoreHeader, IsParsedDefensively) {
  std::string header("SQLite format 3\0", 16);
  header.resize(100);
  const auto check = [&](std::size_t size) {
    std::vector<unsigned char> bytes(header.begin(), header.end());
    bytes.resize(size);
    return check_store_header(bytes, "/x/ids.db", 1);
  };
  header.replace(68, 4, "agbx");
  EXPECT_THAT(check(100).error().message(), HasSubstr("has no schema number"));
  header[63] = 1;
  EXPECT_TRUE(check(100).has_value());
  header[60] = '\x80';
  EXPECT_THAT(check(100).error().message(), HasSubstr("has schema 2147483649"));
  header[60] = 0;
  for (std::size_t size = 0; size < 100; ++size) EXPECT_FALSE(check(size).has_value()) << size;
}

}  // namespace
}  // namespace agbox
