// SPDX-License-Identifier: Apache-2.0
#include "store/log_room.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "unit/store/store_fixture.h"

namespace agbox {
namespace {

constexpr std::uint64_t kRoom = 1'000'000;

class LogRoomTest : public StoreTest {
 protected:
  std::filesystem::path log() const { return folder_ / "log"; }
  std::uint64_t blocks() const {
    struct stat found{};
    EXPECT_EQ(::stat(log().c_str(), &found), 0);
    return static_cast<std::uint64_t>(found.st_blocks) * 512;
  }
};

TEST_F(LogRoomTest, HasBlocksBehindTheEndOfTheLog) {
  std::ofstream(log()) << "text";
  LogRoom room(log(), kRoom);
  EXPECT_FALSE(room.is_held());
  room.hold();
  EXPECT_TRUE(room.is_held());
  EXPECT_GE(blocks(), kRoom);
  EXPECT_EQ(std::filesystem::file_size(log()), 4);
  const std::uint64_t once = blocks();
  room.hold();
  EXPECT_TRUE(room.is_held());
  EXPECT_EQ(blocks(), once);
  EXPECT_FALSE(room.is_all_that_is_left());
}

TEST_F(LogRoomTest, ADiskThatIsTooSmallIsLeftAlone) {
  std::ofstream(log()) << "text";
  LogRoom room(log(), std::uint64_t{1} << 60);
  room.hold();
  EXPECT_FALSE(room.is_held());
  EXPECT_LT(blocks(), kRoom);
}

TEST_F(LogRoomTest, WithoutALogThereIsNone) {
  LogRoom room(log(), kRoom);
  room.hold();
  EXPECT_FALSE(room.is_held());
  EXPECT_FALSE(room.is_all_that_is_left());
  EXPECT_FALSE(std::filesystem::exists(log()));
}

TEST_F(LogRoomTest, AnOpenStoreHasIt) {
  open();
  struct stat found{};
  ASSERT_EQ(::stat((path_.string() + "-wal").c_str(), &found), 0);
  EXPECT_GE(static_cast<std::uint64_t>(found.st_blocks) * 512, 4'000'000U);
}

}  // namespace
}  // namespace agbox
