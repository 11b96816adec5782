// SPDX-License-Identifier: Apache-2.0
#include "model/spec/mount_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agbox {
namespace {

using testing::ElementsAre;

constexpr std::string_view kMounts =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n"
    "30 22 8:2 / /var/lib/docker rw master:2 propagate_from:1 - ext4 /dev/sdb1 rw\n"
    "31 30 8:3 / /var/lib/docker rw - xfs /dev/sdc1 rw,attr2,prjquota\n"
    "32 22 8:4 / /var/lib/docker\\040two rw - btrfs /dev/sdd1 rw\n"
    "half a line\n";

TEST(MountPoint, IsTheDeepestAndOfThoseTheLatest) {
  const auto docker = mount_point_of("/var/lib/docker/overlay2", kMounts);
  ASSERT_TRUE(docker.has_value());
  EXPECT_EQ(docker->directory, "/var/lib/docker");
  EXPECT_EQ(docker->filesystem, "xfs");
  EXPECT_THAT(docker->options, ElementsAre("rw", "attr2", "prjquota"));
  EXPECT_EQ(mount_point_of("/var/lib/docker", kMounts)->filesystem, "xfs");
}

TEST(MountPoint, IsNotOneWhoseNameMerelyBeginsAlike) {
  EXPECT_EQ(mount_point_of("/var/lib/dockerish", kMounts)->directory, "/");
  EXPECT_EQ(mount_point_of("/var/lib/docker two/x", kMounts)->filesystem, "btrfs");
}

TEST(MountPoint, IsNothingWhereNothingIsMounted) {
  EXPECT_FALSE(mount_point_of("/x", "").has_value());
  EXPECT_FALSE(mount_point_of("relative", kMounts).has_value());
}

}  // namespace
}  // namespace agbox
