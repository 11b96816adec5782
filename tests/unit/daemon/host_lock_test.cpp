// SPDX-License-Identifier: Apache-2.0
#include "daemon/host_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "daemon/runtime_directory.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string content(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

fs::perms mode(const fs::path& path) {
  return fs::symlink_status(path).permissions();
}

class RuntimeDirectoryTest : public testing::Test {
 protected:
  RuntimeDirectoryTest() { set_log_level(LogLevel::Error); }
  ~RuntimeDirectoryTest() override { set_log_level(LogLevel::Info); }

  TempDirectory temp_;
  fs::path path_ = temp_.path() / "user" / "agbox";
};

TEST_F(RuntimeDirectoryTest, IsCreatedPrivate) {
  ASSERT_TRUE(RuntimeDirectory::open(path_, Logger()).has_value());
  EXPECT_EQ(mode(path_), fs::perms::owner_all);
  EXPECT_EQ(mode(path_.parent_path()), fs::perms::owner_all);
}

TEST_F(RuntimeDirectoryTest, WiderPermissionsAreRestricted) {
  fs::create_directories(path_);
  fs::permissions(path_, fs::perms::all);
  ASSERT_TRUE(RuntimeDirectory::open(path_, Logger()).has_value());
  EXPECT_EQ(mode(path_), fs::perms::owner_all);
}

TEST_F(RuntimeDirectoryTest, ASymbolicLinkIsRefused) {
  const fs::path target = temp_.path() / "target";
  fs::create_directory(target);
  fs::permissions(target, fs::perms::all);
  fs::create_directories(path_.parent_path());
  fs::create_symlink(target, path_);
  const auto directory = RuntimeDirectory::open(path_, Logger());
  ASSERT_FALSE(directory.has_value());
  EXPECT_THAT(directory.error().message(),
              AllOf(HasSubstr(path_.string()), HasSubstr("symbolic link")));
  EXPECT_EQ(mode(target), fs::perms::all);
}

TEST_F(RuntimeDirectoryTest, AFileIsRefused) {
  fs::create_directories(path_.parent_path());
  std::ofstream(path_) << "mine";
  EXPECT_FALSE(RuntimeDirectory::open(path_, Logger()).has_value());
  EXPECT_EQ(content(path_), "mine");
}

TEST_F(RuntimeDirectoryTest, AnotherUsersDirectoryIsRefused) {
  fs::create_directories(path_);
  // Only root can chown a directory; for other users any directory of root is another user's.
  const bool is_root = ::geteuid() == 0;
  if (is_root) ASSERT_EQ(::chown(path_.c_str(), 12345, 12345), 0);
  const auto directory = RuntimeDirectory::open(is_root ? path_ : "/usr", Logger());
  ASSERT_FALSE(directory.has_value());
  EXPECT_THAT(directory.error().message(),
              HasSubstr(is_root ? "belongs to user 12345, not to user 0" : "belongs to user 0"));
}

class HostLockTest : public RuntimeDirectoryTest {
 protected:
  RuntimeDirectory temp_directory_ = *RuntimeDirectory::open(path_, Logger());
  fs::path file_ = path_ / "agboxd.lock";

  Result<HostLock> acquire() { return HostLock::acquire(temp_directory_, "agboxd.lock"); }
};

TEST_F(HostLockTest, ContainsThePidAndIsNotRemoved) {
  std::ofstream(file_) << "a longer text of an earlier daemon\n";
  {
    const auto lock = acquire();
    ASSERT_TRUE(lock.has_value());
    EXPECT_EQ(content(file_), std::to_string(::getpid()) + "\n");
  }
  EXPECT_TRUE(fs::exists(file_));
}

TEST_F(HostLockTest, IsHeldByOne) {
  auto first = acquire();
  ASSERT_TRUE(first.has_value());
  const auto second = acquire();
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().message(),
            "agboxd host lock " + file_.string() +
                " is already held; refuse to start a second daemon on this machine");
  EXPECT_EQ(content(file_), std::to_string(::getpid()) + "\n");
}

TEST_F(HostLockTest, IsMovableAndReleasedWithItsHandle) {
  {
    auto first = acquire();
    const HostLock moved = std::move(*first);
    EXPECT_FALSE(acquire().has_value());
  }
  EXPECT_TRUE(acquire().has_value());
}

TEST_F(HostLockTest, DoesNotFollowASymbolicLink) {
  const fs::path target = temp_.path() / "target";
  std::ofstream(target) << "precious";
  fs::create_symlink(target, file_);
  const auto lock = acquire();
  ASSERT_FALSE(lock.has_value());
  EXPECT_THAT(lock.error().message(), AllOf(HasSubstr(file_.string()), HasSubstr("symbolic link")));
  EXPECT_EQ(content(target), "precious");
}

TEST_F(HostLockTest, RefusesOtherFileTypes) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  const auto fifo = acquire();
  ASSERT_FALSE(fifo.has_value());
  EXPECT_THAT(fifo.error().message(), HasSubstr("not a regular file"));
  fs::remove(file_);
  fs::create_directory(file_);
  EXPECT_FALSE(acquire().has_value());
  EXPECT_TRUE(fs::is_directory(file_));
}

}  // namespace
}  // namespace agbox
