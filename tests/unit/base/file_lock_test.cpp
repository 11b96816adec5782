// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text_file.h"
#include "base/unique_fd.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

constexpr std::string_view kLocks =
    "1: FLOCK  ADVISORY  WRITE 1234 00:1a:567 0 EOF\n"
    "1: -> FLOCK  ADVISORY  WRITE 1235 00:1a:567 0 EOF\n"
    "2: POSIX  ADVISORY  WRITE 1236 08:01:568 0 EOF\n"
    "3: FLOCK  ADVISORY  READ  1237 08:01:569 0 EOF\n"
    "nonsense\n";

TEST(HoldsFlock, IsTrueOnlyForTheHolderOfThatFile) {
  EXPECT_TRUE(holds_flock(kLocks, 1234, 567));
  EXPECT_FALSE(holds_flock(kLocks, 1234, 67)) << "the end of another number";
  EXPECT_FALSE(holds_flock(kLocks, 1235, 567)) << "one who waits for it";
  EXPECT_FALSE(holds_flock(kLocks, 1236, 568)) << "another kind of lock";
  EXPECT_FALSE(holds_flock(kLocks, 1237, 569)) << "one that others may have too";
  EXPECT_FALSE(holds_flock("", 1234, 567));
}

TEST(HoldsFlock, ParsesTheKernelsFormat) {
  const TempDirectory directory;
  const std::string path = directory.path() / "lock";
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  struct stat file{};
  ASSERT_EQ(::fstat(fd.get(), &file), 0);
  EXPECT_FALSE(holds_flock(read_text_file("/proc/locks").value(), ::getpid(), file.st_ino));
  ASSERT_EQ(::flock(fd.get(), LOCK_EX), 0);
  EXPECT_TRUE(holds_flock(read_text_file("/proc/locks").value(), ::getpid(), file.st_ino));
}

TEST(TextFile, IsNulloptIfUnreadable) {
  const TempDirectory directory;
  EXPECT_EQ(read_text_file(directory.path() / "nothing"), std::nullopt);
  EXPECT_EQ(read_text_file(directory.path()), std::nullopt);
}

}  // namespace
}  // namespace agbox
