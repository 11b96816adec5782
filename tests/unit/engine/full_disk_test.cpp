// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/doctor/full_disk.h"

#include <gtest/gtest.h>

namespace agbox {
namespace {

TEST(FullDiskTest, AFullDiskIsRemarkedOn) {
  // procfs has no blocks at all.
  EXPECT_EQ(full_disk_remark("/proc"),
            "; the engine's disk (/proc) has 0 MiB left: free some space there");
  EXPECT_EQ(full_disk_remark("/"), "");
}

TEST(FullDiskTest, ADiskThatCannotBeSeenIsNot) {
  EXPECT_EQ(full_disk_remark("/nowhere/docker"), "");
  EXPECT_EQ(full_disk_remark(""), "");
}

}  // namespace
}  // namespace agbox
