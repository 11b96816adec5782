// SPDX-License-Identifier: Apache-2.0
#include "execlog/disk_room.h"

#include <gtest/gtest.h>

namespace agbox {
namespace {

TEST(DiskRoomTest, TheReserveIsATwentiethAndAtMost256MiB) {
  EXPECT_EQ(free_space_reserve(0), 0U);
  EXPECT_EQ(free_space_reserve(1000), 50U);
  EXPECT_EQ(free_space_reserve(std::uint64_t{5} << 30), std::uint64_t{256} << 20);
  EXPECT_EQ(free_space_reserve(std::uint64_t{5000} << 30), std::uint64_t{256} << 20);
}

TEST(DiskRoomTest, AFullDiskIsRemarkedOn) {
  // procfs has no blocks at all.
  EXPECT_EQ(full_disk_remark("/proc"),
            "; the engine's disk (/proc) has 0 MiB left: make room there");
  EXPECT_EQ(full_disk_remark("/"), "");
}

TEST(DiskRoomTest, ADiskThatCannotBeSeenIsNot) {
  EXPECT_EQ(full_disk_remark("/nowhere/docker"), "");
  EXPECT_EQ(full_disk_remark(""), "");
}

}  // namespace
}  // namespace agbox
