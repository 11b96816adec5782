// SPDX-License-Identifier: Apache-2.0
#include "store/wal_reserve.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "unit/store/store_fixture.h"

namespace agbox {
namespace {

constexpr std::uint64_t kBytes = 1'000'000;

class WalReserveTest : public StoreTest {
 protected:
  std::filesystem::path log() const { return temp_directory_ / "log"; }
  std::uint64_t blocks() const {
    struct stat found{};
    EXPECT_EQ(::stat(log().c_str(), &found), 0);
    return static_cast<std::uint64_t>(found.st_blocks) * 512;
  }
};

TEST_F(WalReserveTest, ReservesBlocksBeyondTheEndOfTheLog) {
  std::ofstream(log()) << "text";
  WalReserve reserve(log(), kBytes);
  EXPECT_FALSE(reserve.is_held());
  reserve.hold();
  EXPECT_TRUE(reserve.is_held());
  EXPECT_GE(blocks(), kBytes);
  EXPECT_EQ(std::filesystem::file_size(log()), 4);
  const std::uint64_t once = blocks();
  reserve.hold();
  EXPECT_TRUE(reserve.is_held());
  EXPECT_EQ(blocks(), once);
  EXPECT_FALSE(reserve.is_last_space());
}

TEST_F(WalReserveTest, ReservesNothingOnASmallDisk) {
  std::ofstream(log()) << "text";
  WalReserve reserve(log(), std::uint64_t{1} << 60);
  reserve.hold();
  EXPECT_FALSE(reserve.is_held());
  EXPECT_LT(blocks(), kBytes);
}

TEST_F(WalReserveTest, ReservesNothingWithoutALog) {
  WalReserve reserve(log(), kBytes);
  reserve.hold();
  EXPECT_FALSE(reserve.is_held());
  EXPECT_FALSE(reserve.is_last_space());
  EXPECT_FALSE(std::filesystem::exists(log()));
}

TEST_F(WalReserveTest, AnOpenStoreHasAReserve) {
  open();
  struct stat found{};
  ASSERT_EQ(::stat((path_.string() + "-wal").c_str(), &found), 0);
  EXPECT_GE(static_cast<std::uint64_t>(found.st_blocks) * 512, 4'000'000U);
}

}  // namespace
}  // namespace agbox
